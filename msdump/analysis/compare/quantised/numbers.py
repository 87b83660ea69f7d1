"""Codes as the numbers that they mean: tensors of a dump that are computed when they are read."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from msdump.analysis.compare.common_tensors import host_shape
from msdump.errors import FormatError
from msdump.formats.dump_tensor import DumpedTensor
from msdump.storage import files
from msdump.tensors.arrays import Array


@dataclass(frozen=True, slots=True)
class ComputedTensor(DumpedTensor):
    """A tensor that no file holds: float32 numbers that follow from one or more of a dump.

    The file and the slot are those of the tensor that it is made of.   values: gives them; tag: tells two of one file
    apart
    """

    values: Callable[[], Array] = field(default=lambda: np.empty(0, np.float32), compare=False, repr=False)
    tag: int = -2

    @property
    def content_id(self) -> tuple[int, int, int]:
        device, inode, *_ = files.content_id(self.path)
        return device, inode, self.tag

    @property
    def claimed_hash(self) -> str | None:
        return None

    @property
    def content_hash(self) -> str | None:
        return None

    def load(self) -> Array:
        """Raises: as `DumpedTensor.load`, of the tensors that it is made of."""
        return self.values()

    def load_host(self) -> Array:
        return self.values()


_FIELDS = [one.name for one in fields(DumpedTensor)]


def computed(tensor: DumpedTensor, values: Callable[[], Array], *details: object) -> ComputedTensor:
    """Numbers in the place of a tensor, with its name.   details: what tells them from others that are made of it"""
    parts: dict[str, Any] = {name: getattr(tensor, name) for name in _FIELDS}
    size = 4 * count_of(tensor)
    parts.update(dtype="float32", original_dtype=None, small=None, offset=-1, size_bytes=size, shape=host_shape(tensor))
    text = repr((tensor.offset, tensor.io, tensor.slot, details)).encode()
    return ComputedTensor(**parts, values=values, tag=-2 - zlib.crc32(text))


def loaded(tensor: DumpedTensor | None) -> Array | None:
    """The array of a tensor as the host has it; None where there is none, or it cannot be read."""
    if tensor is None:
        return None
    try:
        return tensor.load_host()
    except (FormatError, OSError):
        return None


def count_of(tensor: DumpedTensor) -> int:
    """Number of elements."""
    return math.prod(host_shape(tensor))


@dataclass(frozen=True, eq=False)
class Grid:
    """What codes mean: (codes - zero) * scale.

    Shapes: of scale and zero: one number; one for each channel along `axis` (None: the axis of that length, the first
            of several); one for each row, with all axes but the last; or as many axes as the codes have, where each
            number stands for a block.
    Edges:  a scale of 0 makes zeros; int8, uint8, int4 and other codes alike.
    """

    scale: Array
    zero: Array
    axis: int | None = None

    def numbers(self, codes: Array) -> Array:
        """float32 of the shape of the codes.   Raises: FormatError where the shapes do not fit each other."""
        shape = codes.shape
        zero = _spread(self.zero, shape, self.axis)
        scale = _spread(self.scale, shape, self.axis)
        return np.asarray((codes.astype(np.float64) - zero) * scale, np.float32)

    def rounded(self, numbers: Array, low: float, high: float) -> Array:
        """What numbers become when they are rounded to codes from `low` to `high` and back."""
        zero, scale = (_spread(part, numbers.shape, self.axis) for part in (self.zero, self.scale))
        with np.errstate(all="ignore"):
            codes = np.rint(numbers.astype(np.float64) / scale) + zero
        codes = np.clip(np.nan_to_num(codes), low, high)
        return np.asarray((codes - zero) * scale, np.float32)

    def of(self, codes: DumpedTensor) -> ComputedTensor:
        """The codes of a dump as numbers."""
        return computed(
            codes, lambda: self.numbers(codes.load_host()), self.scale.tobytes(), self.zero.tobytes(), self.axis
        )

    def is_equal(self, other: Grid) -> bool:
        """Whether scales and zero points are the same."""
        return np.array_equal(self.scale, other.scale) and np.array_equal(self.zero, other.zero)

    def times(self, other: Grid) -> Grid:
        """The grid of sums of products of codes of both: such is a bias in int32."""
        return Grid(np.multiply(self.scale.reshape(-1), other.scale.reshape(-1)), np.zeros(1), 0)


def grid(scale: Array | float, zero: Array | float | None = None, axis: int | None = None, offset: int = 1) -> Grid:
    """A grid of arrays or numbers.   offset: -1 where `zero` is added to the codes"""
    scales = np.asarray(scale)
    if scales.dtype == np.uint64:
        # GE keeps the bits of a float32 in the lower half.
        scales = (scales & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.float32)
    zeros = np.zeros(1) if zero is None else np.asarray(zero, np.float64) * offset
    return Grid(np.asarray(scales, np.float64), zeros, axis)


def fitted(codes: Array, numbers: Array) -> Grid | None:
    """The grid of codes whose numbers a dump holds beside them, by least squares; None where they tell nothing.

    Edges: codes at the ends are left out, for what was clipped lies anywhere.
    """
    x, y = codes.astype(np.float64).reshape(-1), numbers.astype(np.float64).reshape(-1)
    if x.size != y.size or x.size == 0:
        return None
    inner = (x > x.min()) & (x < x.max()) & np.isfinite(y)
    x, y = x[inner], y[inner]
    if x.size < 2 or np.ptp(x) == 0:
        return None
    scale = float(np.cov(x, y, bias=True)[0, 1] / x.var())
    return None if scale == 0 else Grid(np.asarray([scale]), np.asarray([round(float(x.mean() - y.mean() / scale))]))


def _spread(part: Array, shape: tuple[int, ...], axis: int | None) -> Array:
    """Scales or zero points against codes of a shape, by broadcasting."""
    part = np.asarray(part, np.float64)
    if part.size == 1:
        return part.reshape(())
    if part.ndim == 1:
        return part.reshape([-1 if index == _channel_axis(part, shape, axis) else 1 for index in range(len(shape))])
    if part.shape == shape[:-1]:
        return part[..., None]
    if part.ndim != len(shape):
        raise FormatError(f"scale: expected the axes of codes {list(shape)}, got {list(part.shape)}.")
    for index, (size, count) in enumerate(zip(shape, part.shape, strict=True)):
        if count not in (1, size):
            part = np.repeat(part, -(-size // count), index).take(range(size), index)
    return part


def _channel_axis(part: Array, shape: tuple[int, ...], axis: int | None) -> int:
    if axis is not None and -len(shape) <= axis < len(shape) and shape[axis] == part.size:
        return axis % len(shape)
    if part.size not in shape:
        raise FormatError(f"scale: expected one for each channel of codes {list(shape)}, got {part.size}.")
    return shape.index(part.size)
