"""The numbers of a tensor as MindSpore writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from msdump.tensors import dtypes
from msdump.tensors.arrays import Array

# Source: MindSpore 2.0 and 2.7. Longer axes show as many elements at both ends; other lines have no break.
_LONGEST_VECTOR, _LONGEST_AXIS, _ENDS = 1000, 6, 3
_INTEGERS_A_LINE, _OTHERS_A_LINE = 24, 12


def scalar_text(array: Array) -> str:
    """A tensor without axes: floats have up to six digits.   Example: "0.333333", "1e+09", "True", "5"."""
    row = dtypes.dtype_from_numpy(array.dtype)
    return f"{float(array):g}" if row.is_float else str(array.item())


def values_text(array: Array, separator: str = ", ") -> str:
    """A tensor of one axis or more, in brackets.

    Edges:  floats have 8 digits behind the point, 4 where they have fewer than 32 bits; vectors of more than 1000
            elements, and axes of more than 6 in tensors of more axes, leave the middle out.
    """
    if not array.size:
        return "[]"
    row = dtypes.dtype_from_numpy(array.dtype)
    longest = _LONGEST_VECTOR if array.ndim == 1 else _LONGEST_AXIS
    if row.is_float:
        digits = 8 if row.bits >= 32 else 4
        write: Callable[[Any], str] = f"{{:{digits + 7}.{digits}e}}".format
    else:
        shortest = len("False") if row.kind == dtypes.BOOL else 0
        width = max(shortest, *(len(str(value)) for value in _shown(array, longest)))
        write = partial(_padded, width)
    a_line = _INTEGERS_A_LINE if row.kind in (dtypes.INT, dtypes.UINT) else _OTHERS_A_LINE
    return _axis_text(array, _Style(write, separator, longest, a_line))


@dataclass(frozen=True)
class _Style:
    """How elements are written, what is between them, and how many an axis and a line have at most."""

    write: Callable[[Any], str]
    separator: str
    longest: int
    a_line: int


def _padded(width: int, value: Any) -> str:
    return str(value).rjust(width)


def _shown(array: Array, longest: int) -> Iterator[Any]:
    for axis, size in enumerate(array.shape):
        if size > longest:
            array = np.take(array, [*range(_ENDS), *range(size - _ENDS, size)], axis)
    yield from array.reshape(-1).tolist()


def _axis_text(array: Array, style: _Style) -> str:
    parts = [array[:_ENDS], array[-_ENDS:]] if len(array) > style.longest else [array]
    if array.ndim == 1:
        return "[" + " ... ".join(_lines(part.tolist(), style) for part in parts) + "]"
    gap = style.separator.rstrip() + "\n"
    rows = [gap.join(_axis_text(row, style) for row in part) for part in parts]
    return "[" + (gap + "...\n").join(rows).replace("\n", "\n ") + "]"


def _lines(values: list[Any], style: _Style) -> str:
    starts = range(0, len(values), style.a_line)
    lines = [style.separator.join(map(style.write, values[start : start + style.a_line])) for start in starts]
    return f"{style.separator}\n ".join(lines)
