"""Replay of a dumped operator: inside msdump, or by a stand-alone script."""
