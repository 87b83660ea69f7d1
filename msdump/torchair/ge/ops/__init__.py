"""Operators by family: the converters of ATen operators, and behind each the kernels of its GE operators, on torch."""
