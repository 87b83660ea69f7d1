"""One dumped operator computed again: inside msdump, or by a script that runs anywhere."""
