"""Kernels of GE operators on torch, in files by family. Conventions: see `registry.Kernel`."""
