"""Two dumps against each other: which operators differ, and which goes wrong first."""
