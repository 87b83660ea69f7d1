"""Tensors with elements of several kinds, and when two numbers are the same."""

from __future__ import annotations

import math

import torch

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


def plain(size: int, dtype: torch.dtype, seed: int, kind: str) -> torch.Tensor:
    """Elements of all magnitudes, or with special values between, or all bits at random."""
    generator = torch.Generator().manual_seed(seed)
    if dtype is torch.bool:
        return torch.randint(0, 2, (size,), generator=generator, dtype=torch.uint8).to(torch.bool)
    width = dtype.itemsize
    bits = torch.randint(0, 256, (size * width,), generator=generator, dtype=torch.uint8).view(dtype)
    if kind == "bits" or dtype not in FLOATS:
        return bits
    values = torch.randn(size, generator=generator, dtype=torch.float64)
    values *= 10.0 ** torch.empty(size, dtype=torch.float64).uniform_(-3, 3, generator=generator)
    values = values.to(dtype)
    if kind == "special" and size:
        special = torch.tensor([0.0, -0.0, math.inf, -math.inf, math.nan, torch.finfo(dtype).tiny], dtype=dtype)
        where = torch.randint(0, size, (1 + size // 7,), generator=generator)
        values[where] = special[torch.randint(0, 6, where.shape, generator=generator)]
    if kind == "zeros":
        values[torch.rand(size, generator=generator) < 0.5] = -0.0
    return values


def same(ours: float, theirs: float | None) -> bool:
    theirs = math.nan if theirs is None else theirs
    return (math.isnan(ours) and math.isnan(theirs)) or (
        ours == theirs and math.copysign(1, ours) == math.copysign(1, theirs)
    )
