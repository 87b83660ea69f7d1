"""`msprobe.pytorch.dump`."""
