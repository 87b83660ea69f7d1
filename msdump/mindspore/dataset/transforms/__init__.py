"""`mindspore.dataset.transforms`: transforms of any data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from msdump.errors import ConfigError
from msdump.mindspore.common.dtype import DType, dtype_name
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.batching import pad_end
from msdump.mindspore.dataset.rows import RandomTransform, apply_operation
from msdump.mindspore.names import explain_missing, publish
from msdump.tensors.arrays import Array

Transforms = Sequence[Callable[..., Any]]


class TypeCast:
    """Another dtype, as numpy's `astype` does it."""

    def __init__(self, data_type: Any) -> None:
        self._dtype = DType(dtype_name(data_type)).numpy

    def __call__(self, data: Any) -> Array:
        array = np.asarray(data)
        if array.dtype.kind in "US":
            raise ConfigError(f"TypeCast: expected numbers, got {array.dtype}. Convert strings in a map before.")
        return array.astype(self._dtype)


class OneHot:
    """A one at the label's place.

    Shapes: () or (1,) -> (num_classes,); (N,) -> (N, num_classes)
    Dtypes: integers only; kept, or float64 with smoothing.
    Raises: TypeError, ConfigError (a label outside [0, num_classes)).
    """

    def __init__(self, num_classes: int, smoothing_rate: float = 0.0) -> None:
        self._num_classes = checks.whole_number("OneHot(num_classes)", num_classes)
        self._smoothing_rate = checks.probability("OneHot(smoothing_rate)", smoothing_rate)

    def __call__(self, label: Any) -> Array:
        labels = np.asarray(label)
        if labels.dtype.kind not in "iu":
            raise TypeError(f"OneHot: expected integer labels, got {labels.dtype}.")
        if labels.size and not 0 <= int(labels.min()) <= int(labels.max()) < self._num_classes:
            raise ConfigError(f"OneHot: expected labels in [0, {self._num_classes - 1}], got {labels.tolist()}.")
        hot: Array = np.equal(labels.reshape(-1, 1), np.arange(self._num_classes)).astype(labels.dtype)
        if self._smoothing_rate:
            hot = (hot * (1.0 - self._smoothing_rate) + self._smoothing_rate / self._num_classes).astype(np.float64)
        return hot.reshape(-1) if labels.shape in ((), (1,)) else hot


class Duplicate:
    """The same value in two columns."""

    def __call__(self, data: Any) -> tuple[Array, Array]:
        array = np.asarray(data)
        return array, array.copy()


class Fill:
    """An array of the same shape and dtype, full of one value."""

    def __init__(self, fill_value: Any) -> None:
        self._fill_value = fill_value

    def __call__(self, data: Any) -> Array:
        array = np.asarray(data)
        if (array.dtype.kind in "US") != isinstance(self._fill_value, (str, bytes)):
            raise ConfigError(f"Fill: expected a value that fits {array.dtype}, got {self._fill_value!r}.")
        return (
            np.full(array.shape, self._fill_value)
            if array.dtype.kind in "US"
            else np.full_like(array, self._fill_value)
        )


class Relational(IntEnum):
    """How `Mask` compares."""

    EQ = 0
    NE = 1
    GT = 2
    GE = 3
    LT = 4
    LE = 5


_COMPARISONS = (np.equal, np.not_equal, np.greater, np.greater_equal, np.less, np.less_equal)


class Mask:
    """Where a comparison with `constant` holds, as `dtype`."""

    def __init__(self, operator: Relational, constant: Any, dtype: Any = np.bool_) -> None:
        if not isinstance(operator, Relational):
            raise TypeError(f"Mask(operator): expected a Relational, got {type(operator).__name__}.")
        if not isinstance(constant, (str, int, float, bool, bytes)):
            raise TypeError(f"Mask(constant): expected a number or a str, got {type(constant).__name__}.")
        self._compare, self._constant = _COMPARISONS[operator], constant
        self._dtype = DType(dtype_name(dtype)).numpy

    def __call__(self, data: Any) -> Array:
        array = np.asarray(data)
        if (array.dtype.kind in "US") != isinstance(self._constant, (str, bytes)):
            raise ConfigError(f"Mask: expected a constant that fits {array.dtype}, got {self._constant!r}.")
        return np.asarray(self._compare(array, self._constant)).astype(self._dtype)


class PadEnd:
    """The shape `pad_shape`: `pad_value` (0 or "") after the values, or the front part of a longer axis.

    Edges: None in `pad_shape` keeps that axis.
    """

    def __init__(self, pad_shape: Sequence[int | None], pad_value: Any = None) -> None:
        if not isinstance(pad_shape, (list, tuple)):
            raise TypeError(f"PadEnd(pad_shape): expected a list, got {type(pad_shape).__name__}.")
        sizes = [size if size is None else checks.whole_number("PadEnd(pad_shape)", size) for size in pad_shape]
        self._sizes, self._value = sizes, pad_value

    def __call__(self, data: Any) -> Array:
        array = np.asarray(data)
        if array.ndim != len(self._sizes):
            raise ConfigError(f"PadEnd: expected a value of rank {len(self._sizes)}, got shape {array.shape}.")
        sizes = [have if size is None else size for size, have in zip(self._sizes, array.shape, strict=True)]
        return pad_end("PadEnd(pad_value)", array, sizes, self._value)


class Concatenate:
    """`prepend`, the value and `append` in a row; 1-d, of one dtype."""

    def __init__(self, axis: int = 0, prepend: Any = None, append: Any = None) -> None:
        if axis not in (0, -1):
            raise ConfigError(f"Concatenate(axis): expected 0 or -1, got {axis!r}.")
        self._sides = []
        for name, value in (("prepend", prepend), ("append", append)):
            array = None if value is None else np.asarray(value)
            if array is not None and array.ndim != 1:
                raise ConfigError(f"Concatenate({name}): expected a 1-d array, got shape {array.shape}.")
            self._sides.append(array)

    def __call__(self, data: Any) -> Array:
        array = np.asarray(data)
        if array.ndim != 1:
            raise ConfigError(f"Concatenate: expected a 1-d value, got shape {array.shape}.")
        parts = [part for part in (self._sides[0], array, self._sides[1]) if part is not None]
        for part in parts:
            if part.dtype != array.dtype and not (part.dtype.kind in "US" and array.dtype.kind in "US"):
                raise ConfigError(f"Concatenate: expected {array.dtype} as the value has, got {part.dtype}.")
        return np.concatenate(parts)


class Slice:
    """Parts of each axis: an int, a list of ints, a slice, `...` or None for all of it. No axis goes away."""

    def __init__(self, *slices: Any) -> None:
        for part in slices:
            numbers = part if isinstance(part, list) else [part]
            if not isinstance(part, (slice, type(None), type(...))) and not all(
                isinstance(number, int) and not isinstance(number, bool) for number in numbers
            ):
                raise TypeError(f"Slice: expected ints, lists of ints, slices, ... or None, got {part!r}.")
        self._parts = slices

    def __call__(self, data: Any) -> Array:
        array = np.asarray(data)
        if array.ndim == 0 or len(self._parts) > array.ndim:
            raise ConfigError(f"Slice: expected a value of rank {max(len(self._parts), 1)}, got shape {array.shape}.")
        for axis, part in enumerate(self._parts):
            if part is None or part is ...:
                continue
            size = array.shape[axis]
            places = list(range(size))[part] if isinstance(part, slice) else part
            places = places if isinstance(places, list) else [places]
            for place in places:
                if not -size <= place < size:
                    raise ConfigError(f"Slice: expected an index in [{-size}, {size - 1}], got {place}.")
            if not places:
                raise ConfigError(f"Slice: expected at least one index of axis {axis}, got none of {size}.")
            array = np.take(array, places, axis)
        return array


class Unique:
    """The different values in the order in which they come, where each value is in them, and how often each comes.

    Shapes: of rank 2 or more -> (U,), (N,) int32, (U,) int32
    """

    def __call__(self, data: Any) -> tuple[Array, Array, Array]:
        array = np.asarray(data)
        if array.ndim < 2:
            raise ConfigError(f"Unique: expected a value of rank 2 or more, got shape {array.shape}.")
        values, first, inverse, counts = np.unique(
            array.reshape(-1), return_index=True, return_inverse=True, return_counts=True
        )
        order = np.argsort(first)
        rank = np.argsort(order)
        return values[order], rank[inverse.reshape(-1)].astype(np.int32), counts[order].astype(np.int32)


def not_random(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator that marks a function as one that draws no numbers; it changes nothing here."""
    func.random = False  # type: ignore[attr-defined]
    return func


class Compose(RandomTransform, takes="transforms:operations"):
    """Transforms one after the other, as one transform."""

    def draw(self, generator: np.random.Generator, *values: Any) -> Any:
        for transform in self.transforms:
            values = apply_operation(transform, values, lambda: generator)
        return values[0] if len(values) == 1 else values


class RandomApply(Compose, takes="transforms:operations prob:chance=0.5"):
    """All of the transforms, with probability `prob`, or none."""

    def draw(self, generator: np.random.Generator, *values: Any) -> Any:
        if generator.random() < self.prob:
            return super().draw(generator, *values)
        return values[0] if len(values) == 1 else values


class RandomChoice(RandomTransform, takes="transforms:operations"):
    """One of the transforms, all equally likely."""

    def draw(self, generator: np.random.Generator, *values: Any) -> Any:
        chosen = self.transforms[int(generator.integers(len(self.transforms)))]
        return Compose([chosen]).draw(generator, *values)


publish(__name__)

__getattr__ = explain_missing(__name__)
