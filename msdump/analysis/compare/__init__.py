"""Comparison of two dumps: which operators differ, and which is the first wrong one."""
