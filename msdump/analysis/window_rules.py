"""Attributes of operators as numbers. Each function stands alone: `msdump repro` copies it."""

from __future__ import annotations

from typing import Any


def pair_of(value: Any) -> tuple[int, int]:
    """An int, (h, w) or (1, 1, h, w) as (h, w)."""
    if isinstance(value, int):
        return value, value
    return tuple(value)[-2:]


def padding_of(attrs: Any, size: Any, kernel: Any, stride: Any, dilation: Any) -> tuple[int, int, int, int]:
    """Padding (top, bottom, left, right) of an image of `size`, by `pad_mode`."""
    mode = str(attrs.get("pad_mode", "valid")).lower()
    if mode == "same":
        edges = []
        for length, k, s, d in zip(size, kernel, stride, dilation):  # noqa: B905
            total = max((-(-length // s) - 1) * s + (k - 1) * d + 1 - length, 0)
            edges += [total // 2, total - total // 2]
        return tuple(edges)
    if mode == "pad":
        pad = attrs.get("pad", 0)
        return (pad,) * 4 if isinstance(pad, int) else tuple(pad)
    return 0, 0, 0, 0


def axis_of(attrs: Any) -> int:
    """The one axis of a softmax: an int or a tuple of one."""
    axis = attrs.get("axis", -1)
    return axis if isinstance(axis, int) else int(axis[0])
