"""What a fused operator computes on its way, in the steps in which others write it: scores and shares of an attention,
deviations of a norm, a product before its bias.

A way counts only where it ends in what the operator made: a mask, a scale or an epsilon that no file tells is found so.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from msdump.analysis.compare.values import Figures, figures_of
from msdump.analysis.distance.bounds import Bounds, bounds_of, reason_to_differ
from msdump.analysis.distance.metrics import compare_arrays
from msdump.errors import FormatError
from msdump.formats.dump_tensor import DumpedTensor
from msdump.tensors.arrays import Array

Way = Sequence[Array]  # what is made one after the other, the result last
_EPSILONS = (1e-5, 1e-6, 1e-12, 1e-3, 1e-8, 0.0)
_MATRIX = 2
_MAX_ELEMENTS = 1 << 24  # of what one operator reads and makes


@dataclasses.dataclass(frozen=True, eq=False)
class _Computed(DumpedTensor):
    """A tensor that no file holds, beside the one of its operator that a file holds."""

    array: Array = dataclasses.field(default_factory=lambda: np.empty(0), repr=False)

    def load_host(self) -> Array:
        return self.array


def inner_values(
    kind: str, inputs: Sequence[tuple[int, Figures]], result: Figures, tolerance: float | None
) -> tuple[Figures, ...]:
    """Figures of what an operator makes before its result; () where no way that is known leads to it.

    inputs  with the numbers of their slots
    """
    ways = _WAYS.get(kind)
    if ways is None or not result.has_elements or result.size > _MAX_ELEMENTS:
        return ()
    try:
        read = {slot: _numbers(figures) for slot, figures in inputs if figures.size <= _MAX_ELEMENTS}
        made = _numbers(result)
        way = _way_to(made, ways(read), bounds_of(result.dtype, result.dtype, tolerance))
    except (FormatError, OSError, ValueError):
        return ()  # a file that is gone, or shapes that do not fit: operands that stand for something else
    found = (_figures(array, result) for array in way[:-1])
    return tuple(figures for figures in found if figures is not None and not figures.is_plain)


def _way_to(made: Array, ways: Iterator[Way], bounds: Bounds) -> Way:
    """The first way that ends in what was made; () where none does."""
    with np.errstate(all="ignore"):
        for way in ways:
            if way[-1].shape == made.shape and not reason_to_differ(compare_arrays(way[-1], made, False), bounds):
                return way
    return ()


def _numbers(figures: Figures) -> Array:
    array = figures.tensor.load_host()
    return array if array.dtype == bool else array.astype(np.float64)


def _figures(array: Array, result: Figures) -> Figures | None:
    fields = {each.name: getattr(result.tensor, each.name) for each in dataclasses.fields(DumpedTensor)}
    array = np.ascontiguousarray(array, np.float32)
    fields |= {"shape": array.shape, "dtype": "float32", "original_dtype": None}
    figures = figures_of(_Computed(**fields, array=array))
    return None if figures is None else dataclasses.replace(figures, dtype=result.dtype)


def _attention(read: Mapping[int, Array]) -> Iterator[Way]:
    """softmax(query @ key.T * scale + mask) @ value."""
    if not {0, 1, 2} <= set(read) or min(read[slot].ndim for slot in (0, 1, 2)) < _MATRIX:
        return
    query, key, value = read[0], read[1], read[2]
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2] or query.shape[:-2] != key.shape[:-2]:
        return
    product = query @ np.swapaxes(key, -1, -2)
    scaled = product / math.sqrt(query.shape[-1])
    masks: list[Array | None] = [None, np.tri(*product.shape[-2:], dtype=bool)]
    masks += [read[slot] for slot in sorted(read) if slot not in (0, 1, 2)]
    for mask in masks:
        try:
            scores = scaled if mask is None else _masked(scaled, mask)
        except ValueError:
            continue  # no mask
        exponents = np.exp(scores - scores.max(-1, keepdims=True))
        shares = exponents / exponents.sum(-1, keepdims=True)
        yield product, scaled, scores, shares, shares @ value


def _masked(scores: Array, mask: Array) -> Array:
    masked = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if masked.shape != scores.shape:
        raise ValueError(mask.shape)
    return masked


def _layer_norm(read: Mapping[int, Array]) -> Iterator[Way]:
    """(x - mean) / sqrt(variance + epsilon) * weight + bias, over the axes of the weight."""
    x, parameters = read.get(0), [array for slot, array in sorted(read.items()) if slot]
    if x is None:
        return
    count = parameters[0].ndim if parameters else 1
    axes = tuple(range(x.ndim - count, x.ndim))
    yield from _norm(x, x.mean(axes, keepdims=True), x.var(axes, keepdims=True), parameters)


def _batch_norm(read: Mapping[int, Array]) -> Iterator[Way]:
    """The same over all axes but the second, by the statistics of the batch or by those that run on."""
    x, parameters = read.get(0), [array for slot, array in sorted(read.items()) if slot]
    if x is None or x.ndim < _MATRIX:
        return
    axes = tuple(axis for axis in range(x.ndim) if axis != 1)
    shape = tuple(length if axis == 1 else 1 for axis, length in enumerate(x.shape))
    turned = [array.reshape(shape) for array in parameters if array.size == x.shape[1]]
    yield from _norm(x, x.mean(axes, keepdims=True), x.var(axes, keepdims=True), turned[:2])
    if len(turned) > 3:  # both statistics as well
        yield from _norm(x, turned[2], turned[3], turned[:2])


def _norm(x: Array, mean: Array, variance: Array, parameters: Sequence[Array]) -> Iterator[Way]:
    for epsilon in _EPSILONS:
        centred = x - mean
        way = [mean, centred, centred * centred, variance, variance + epsilon, np.sqrt(variance + epsilon)]
        way += [1 / way[-1], centred / way[-1]]
        for apply, array in zip((np.multiply, np.add), parameters, strict=False):
            way.append(apply(way[-1], array))
        yield way


def _linear(read: Mapping[int, Array]) -> Iterator[Way]:
    """x @ weight (or its transpose) + bias, in any order of the three."""
    matrices = [array for _, array in sorted(read.items()) if array.ndim >= _MATRIX]
    biases = [array for _, array in sorted(read.items()) if array.ndim < _MATRIX]
    if len(matrices) != _MATRIX or len(biases) != 1:
        return
    x, weight = matrices
    for turned in (weight, np.swapaxes(weight, -1, -2)):
        if x.shape[-1] == turned.shape[-2]:
            product = x @ turned
            yield product, product + biases[0]


def _silu(read: Mapping[int, Array]) -> Iterator[Way]:
    for x in read.values():
        share = 1 / (1 + np.exp(-x))
        yield share, x * share


_WAYS: dict[str, Callable[[Mapping[int, Array]], Iterator[Way]]] = {
    "attention": _attention,
    "layer_norm": _layer_norm,
    "batch_norm": _batch_norm,
    "linear": _linear,
    "silu": _silu,
}
