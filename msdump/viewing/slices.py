"""A part of a tensor as a picture, as text, as a file: bounded, whatever the tensor's size.

cut = ArraySlice.of(array, "0, :, :, 3")
cut.picture()   # at most 512 x 512 cells, each with its least, largest and mean value and what is not finite in it
cut.text()      # at most 200 x 50 elements
"""

from __future__ import annotations

import io
import json
import math
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from msdump.errors import ConfigError
from msdump.tensors.arrays import Array

CELLS = 512  # of a picture, in each direction
MAX_ELEMENTS = 1 << 24  # that one picture or file is made of
TEXT_ROWS, TEXT_COLUMNS = 200, 50
NAN, POSITIVE_INF, NEGATIVE_INF = 1, 2, 4
_BLOCK = 1 << 20  # elements that are looked at together; they stay in a core's cache
_ITEM = re.compile(r"(?P<number>-?\d{1,19})|(?P<start>-?\d{0,19}):(?P<stop>-?\d{0,19})(?::(?P<step>\d{0,19}))?")
_Index = tuple[int | slice, ...]


@dataclass(frozen=True, slots=True)
class Cells:
    """A part of an array in cells of `steps` elements.

    Shapes:  all (rows, columns); least, largest and mean are NaN where no element is finite
    flags    NAN + POSITIVE_INF + NEGATIVE_INF for what else is among the elements of a cell
    """

    least: Array
    largest: Array
    mean: Array
    flags: Array
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ArraySlice:
    """The part of an array that an expression names.

    values  the part: a view of at most two axes
    index   the expression, with all of its parts
    axes    of the array, which those of `values` are
    """

    values: Array
    index: str
    axes: tuple[int, ...]

    @classmethod
    def of(cls, array: Array, expression: str | None = None) -> ArraySlice:
        """Take a part.

        array       of any shape; numbers or bools
        expression  numbers and ranges as in NumPy, such as "0, :, 3:5"; missing ones at the end are ":". None takes the
                    first matrix, or as many of its rows as a picture may be made of
        Raises: ConfigError for what is no index of that array, leaves more than two axes or too many elements.
        """
        if array.dtype.kind not in "biufcV":
            raise ConfigError(f"index: expected a tensor of numbers, got elements of {array.dtype}.")
        index = _first_matrix(array.shape) if expression is None else _parsed(expression, array.shape)
        axes = tuple(axis for axis, item in enumerate(index) if isinstance(item, slice))
        if len(axes) > 2:
            raise ConfigError(
                f"index: expected numbers for all but two axes of {list(array.shape)}, got {expression!r}."
            )
        values = array[index]
        if values.size > MAX_ELEMENTS:
            wanted = f"at most {MAX_ELEMENTS} elements at a time"
            raise ConfigError(f"index: expected {wanted}, got {values.size}. Take fewer, such as 0:4096.")
        return cls(values, _written(index), axes)

    def cells(self, most: int | None = None) -> Cells:
        """Cells, each of equally many elements but for the last ones, at most `most` (`CELLS`) in each direction."""
        matrix = self._matrix
        steps = tuple(max(1, math.ceil(size / (most or CELLS))) for size in matrix.shape)
        parts = [_pooled(block, steps) for block in _blocks(matrix, steps[0])]
        least, largest, mean, flags = (np.concatenate([part[i] for part in parts]) for i in range(4))
        return Cells(least, largest, mean, flags, steps)

    def picture(self) -> bytes:
        """The cells as the page takes them.

        Four bytes with the length n of a JSON text, the text in n bytes, then for all cells, row by row: the least
        values, the largest, the means (little-endian float32; NaN where no element is finite) and one byte each of
        NAN + POSITIVE_INF + NEGATIVE_INF for what else is among its elements.
        """
        cells = self.cells()
        rows, columns = self._matrix.shape
        about = {
            "index": self.index,
            "axes": self.axes,
            "rows": rows,
            "columns": columns,
            "row_step": cells.steps[0],
            "column_step": cells.steps[1],
            "cell_rows": cells.least.shape[0],
            "cell_columns": cells.least.shape[1],
        }
        text = json.dumps(about, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 4)  # floats begin where a program can map them
        floats = [_narrow(number).tobytes() for number in (cells.least, cells.largest, cells.mean)]
        return b"".join([struct.pack("<I", len(text)), text, *floats, cells.flags.astype(np.uint8).tobytes()])

    def text(self) -> dict[str, Any]:
        """The first elements, each as Python writes it: `rows` of the part, `columns`, and `text`, a list of rows."""
        matrix = self._matrix_of(self.values)
        shown = np.asarray(matrix[:TEXT_ROWS, :TEXT_COLUMNS])
        texts = [[str(element) for element in row] for row in shown]
        return {"index": self.index, "rows": matrix.shape[0], "columns": matrix.shape[1], "text": texts}

    def npy(self) -> bytes:
        """The part as a .npy file, without pickles."""
        file = io.BytesIO()
        np.lib.format.write_array(file, np.ascontiguousarray(self.values), allow_pickle=False)
        return file.getvalue()

    @property
    def _matrix(self) -> Array:
        """Two axes of real numbers; complex ones by their absolute value."""
        values = np.abs(self.values) if self.values.dtype.kind == "c" else self.values
        return self._matrix_of(values)

    @staticmethod
    def _matrix_of(values: Array) -> Array:
        return values.reshape((1,) * (2 - values.ndim) + values.shape)


def _first_matrix(shape: Sequence[int]) -> _Index:
    index: list[int | slice] = [0] * max(0, len(shape) - 2) + [slice(None)] * min(2, len(shape))
    if len(shape) >= 2 and math.prod(shape[-2:]) > MAX_ELEMENTS:
        columns = min(shape[-1], MAX_ELEMENTS)
        index[-2:] = [slice(0, max(1, MAX_ELEMENTS // columns)), slice(0, columns)]
    elif len(shape) == 1 and shape[0] > MAX_ELEMENTS:
        index[0] = slice(0, MAX_ELEMENTS)
    if any(size == 0 for size in shape[:-2]):
        raise ConfigError(f"index: expected a tensor with elements, got shape {list(shape)}.")
    return tuple(index)


def _parsed(expression: str, shape: Sequence[int]) -> _Index:
    text = expression.strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if len(parts) > len(shape):
        raise ConfigError(f"index: expected at most {len(shape)} parts for {list(shape)}, got {len(parts)}.")
    index: list[int | slice] = [
        _item(part, size, axis) for axis, (part, size) in enumerate(zip(parts, shape[: len(parts)], strict=True))
    ]
    return (*index, *[slice(None)] * (len(shape) - len(index)))


def _item(part: str, size: int, axis: int) -> int | slice:
    match = _ITEM.fullmatch(part)
    if match is None:
        raise ConfigError(f"index, axis {axis}: expected a number or a range such as 2:5 or :, got {part!r}.")
    if match["number"] is not None:
        number = int(match["number"])
        if not -size <= number < size:
            raise ConfigError(f"index, axis {axis}: expected a number below {size}, got {number}.")
        return number
    start, stop, step = (int(match[name]) if match[name] else None for name in ("start", "stop", "step"))
    if step == 0:
        raise ConfigError(f"index, axis {axis}: expected a step of at least 1, got 0.")
    return slice(start, stop, step)


def _written(index: _Index) -> str:
    return ", ".join(str(item) if isinstance(item, int) else _range(item) for item in index)


def _range(item: slice) -> str:
    start, stop, step = ("" if bound is None else str(bound) for bound in (item.start, item.stop, item.step))
    return f"{start}:{stop}" + (f":{step}" if step else "")


def _blocks(matrix: Array, row_step: int) -> Iterator[Array]:
    """Rows of whole cells, together not much more than _BLOCK elements."""
    cells = max(1, _BLOCK // max(1, row_step * matrix.shape[1]))
    for start in range(0, max(1, matrix.shape[0]), cells * row_step):
        block = matrix[start : start + cells * row_step]
        yield block.astype(np.float64 if block.dtype.kind in "iuf" and block.dtype.itemsize == 8 else np.float32)


def _narrow(cells: Array) -> Array:
    """As little-endian float32; what is too large becomes the largest one, as it is not infinite."""
    most = np.finfo(np.float32).max
    return np.ascontiguousarray(np.clip(cells, -most, most), "<f4")


def _pooled(block: Array, steps: Sequence[int]) -> tuple[Array, Array, Array, Array]:
    """Least, largest, mean and flags of cells of `steps` elements."""
    starts = [np.arange(0, size, step) for size, step in zip(block.shape, steps, strict=True)]
    if block.size == 0:
        empty = np.empty((len(starts[0]), len(starts[1])), block.dtype)
        return empty, empty, empty, empty.astype(np.uint8)

    def pool(function: np.ufunc, values: Array) -> Array:
        if steps[1] > 1:
            values = function.reduceat(values, starts[1], axis=1)
        return function.reduceat(values, starts[0], axis=0) if steps[0] > 1 else values

    finite = np.isfinite(block)
    if finite.all():
        counts = pool(np.add, np.ones_like(block))
        least, largest, total = pool(np.minimum, block), pool(np.maximum, block), pool(np.add, block.astype(np.float64))
        return least, largest, total / counts, np.zeros(least.shape, np.uint8)
    values = np.where(finite, block, np.nan).astype(block.dtype)
    counts = pool(np.add, finite.astype(block.dtype))
    total = pool(np.add, np.where(finite, block, 0.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / counts
    flags = sum(
        pool(np.logical_or, found) * np.uint8(flag)
        for flag, found in (
            (NAN, np.isnan(block)),
            (POSITIVE_INF, np.isposinf(block)),
            (NEGATIVE_INF, np.isneginf(block)),
        )
    )
    return pool(np.fmin, values), pool(np.fmax, values), mean, np.asarray(flags, np.uint8)
