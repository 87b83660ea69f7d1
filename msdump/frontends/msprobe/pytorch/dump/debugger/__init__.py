"""`msprobe.pytorch.dump.debugger`."""
