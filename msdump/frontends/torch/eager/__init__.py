"""Eager PyTorch: every ATen operator of a program that nothing compiles, as it runs."""
