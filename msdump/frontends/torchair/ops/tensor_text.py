"""A tensor as `npu_print` shows it: rows of values, the middle of long axes left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from msdump.arrays import Array
from msdump.frontends.torchair.host_value import NoArrayError, array_from_value

ELLIPSIS = "..."


def tensor_text(tensor: torch.Tensor, summarize_size: int) -> str:
    """`[1 2 3 ... 8 9 10]`; an axis more is a list of such rows, one a line.

    summarize_size  elements from both ends of an axis that is longer than twice as many; -1: all
    Dtypes:  bfloat16 and 8-bit floats are read as float32; a bool is 1 or 0.
    Edges:   0-d is the value alone; whole numbers have no point; no elements: `[]`; a tensor that has no values on
             the host says why in place of them.
    Source:  TorchAir, ops.npu_print.
    """
    try:
        return _array_text(array_from_value(tensor), summarize_size)
    except NoArrayError as error:
        return f"<{error}>"


def filled(template: str, placeholder: str, texts: Sequence[str]) -> str:
    """The template with texts in place of its placeholders, in order. A text that holds one stays as it is.

    Edges: placeholders beyond the last text stay, and texts beyond the last placeholder are left out.
    """
    pieces = template.split(placeholder, len(texts))
    # One text more than gaps: the last piece has none behind it.
    return "".join(piece + text for piece, text in zip(pieces, [*texts[: len(pieces) - 1], ""], strict=True))


def _array_text(array: Array, count: int) -> str:
    if array.ndim == 0:
        return _number_text(array[()])
    if array.size == 0:
        return "[]"
    separator = " " if array.ndim == 1 else "\n "
    if count < 0 or len(array) <= 2 * count:
        return f"[{separator.join(_array_text(row, count) for row in array)}]"
    first = [_array_text(row, count) for row in array[:count]]
    last = [_array_text(row, count) for row in array[-count:]]
    return f"[{separator.join([*first, ELLIPSIS, *last])}]"


def _number_text(value: Any) -> str:
    if isinstance(value, np.bool_):
        return str(int(value))
    if isinstance(value, np.floating) and np.isfinite(value) and value == np.trunc(value):
        return f"{value:.0f}"
    return str(value.item() if isinstance(value, np.integer) else value)
