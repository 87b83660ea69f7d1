"""What an operator does at a border, to the numbers of both runs: which elements it decided otherwise, and whether an
error of its result is that of what it read.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from msdump.analysis.compare.common_tensors import host_shape
from msdump.analysis.compare.result import TensorResult
from msdump.analysis.distance.bounds import ROUNDINGS, Bounds, bounds_of, reason_to_differ, small_gradients
from msdump.analysis.distance.metrics import compare_arrays
from msdump.analysis.steps import Operator
from msdump.operators.kinds import has, kind_of
from msdump.operators.traits import jumps_of
from msdump.tensors.arrays import Array

# Errors of what is read and of what was made are computed apart.
EQUAL = 1.001
_PLANE = 2  # axes
_OF_CHANCES = 0.05


@dataclass(frozen=True, slots=True)
class Both:
    """The numbers of one tensor in both runs, in one shape where they have one.

    margin   how far two elements that belong together may lie apart
    """

    mine: Array
    golden: Array
    dtypes: tuple[str, str]
    margin: float

    @staticmethod
    def of(tensor: TensorResult) -> Both:
        """Raises: FormatError, OSError."""
        mine, golden = (_numbers(side.load_host()) for side in (tensor.mine, tensor.golden))
        mine = mine if tensor.factor == 1 else mine * tensor.factor
        dtypes = tensor.mine.true_dtype, tensor.golden.true_dtype
        # What both have in common agrees: the largest difference that was seen is the margin.
        margin = 0.0 if tensor.metrics is None else 2.0 * tensor.metrics.worst_error
        return Both(mine, golden, dtypes, margin)

    @property
    def is_real(self) -> bool:
        return self.mine.dtype.kind == "f"


def _numbers(array: Array) -> Array:
    """Floats as float64, others as they are."""
    return array.astype(np.float64) if array.dtype.kind in "fV" else array


def agree(both: Both, chosen: Array, bounds: Bounds) -> bool:
    mine, golden = both.mine.reshape(-1)[chosen.reshape(-1)], both.golden.reshape(-1)[chosen.reshape(-1)]
    return not reason_to_differ(compare_arrays(mine, golden, has_divergence=False), bounds)


def flipped_of(op_type: str, inputs: Sequence[Both], output: Both) -> Array | None:
    """Which elements of an output were decided otherwise, at the border; None where that is not so."""
    same = [one for one in inputs if one.is_real and one.mine.shape == one.golden.shape]
    of_its_size = [one for one in same if one.mine.size == output.mine.size]
    kind = kind_of(op_type)
    if jumps := jumps_of(op_type):
        return _across(of_its_size, _sides_of(jumps))
    if has(op_type, "steps"):
        flipped = _across(of_its_size, _floors(kind))
        far = np.abs(output.mine.astype(np.float64) - output.golden.astype(np.float64)).reshape(-1) > 1
        return None if flipped is None or bool((far & flipped).any()) else flipped
    if has(op_type, "compares"):
        return _compared(kind, same, output)
    if has(op_type, "routes"):
        return _routed(of_its_size, output)
    if has(op_type, "sums"):
        return _cancelled(inputs, output, is_mean=kind == "mean")
    return _selected(same, output) if output.mine.dtype.kind in "iu" else None


def _sides_of(jumps: Sequence[float]) -> Callable[[Array], Array]:
    """On which side of each border a value lies, or on the border itself."""

    def sides(x: Array) -> Array:
        return np.asarray(np.sign(np.subtract.outer(np.array(jumps), x)).sum(axis=0))

    return sides


def _floors(kind: str) -> Callable[[Array], Array]:
    """Which whole numbers lie on either side; at a border itself libraries go up, down, or to the even one."""

    def parts(x: Array) -> Array:
        shifted = x - 0.5 if kind == "round" else x
        return np.ceil(shifted) if kind == "ceil" else np.floor(shifted) + (kind != "floor") * np.ceil(shifted)

    return parts


def _across(arguments: Sequence[Both], side_of: Callable[[Array], Array]) -> Array | None:
    """Elements in which an argument lies on another side of a border."""
    flipped = None
    with np.errstate(invalid="ignore"):
        for one in arguments:
            other = (side_of(one.mine) != side_of(one.golden)).reshape(-1)
            flipped = other if flipped is None else flipped | other
    return flipped


def _compared(kind: str, arguments: Sequence[Both], output: Both) -> Array | None:
    """Of x < y: where the sign of x - y is another. Of x < c, whose c no file holds: there is one c for both runs."""
    if not arguments:
        return None
    flipped: Array = (output.mine != output.golden).reshape(-1)
    if len(arguments) > 1:
        x, y = arguments[:2]
        with np.errstate(invalid="ignore"):
            near = np.abs(x.golden - y.golden) <= x.margin + y.margin
        near = np.broadcast_to(near, output.mine.shape).reshape(-1)
        return flipped if bool(near[flipped].all()) else None
    only = arguments[0]
    if only.mine.size != output.mine.size or kind in ("eq", "ne"):
        return None
    is_less = kind.lower().startswith("l")
    borders = [_border(x.reshape(-1), (said != is_less).reshape(-1)) for x, said in (
        (only.mine, output.mine.astype(bool)), (only.golden, output.golden.astype(bool)),
    )]  # fmt: skip
    low, high = max(low for low, _ in borders), min(high for _, high in borders)
    return flipped if low <= high + only.margin else None


def _border(x: Array, is_above: Array) -> tuple[float, float]:
    """Between which values the constant lies that x was compared with."""
    finite = np.isfinite(x)
    below, above = x[finite & ~is_above], x[finite & is_above]
    return float(below.max(initial=-math.inf)), float(above.min(initial=math.inf))


def _routed(arguments: Sequence[Both], output: Both) -> Array | None:
    """The gradient of max-pooling goes to another element of the window, whose value is nearly the same."""
    moved = np.abs(output.mine - output.golden).reshape(-1)
    top = max(float(np.abs(output.golden).max(initial=0.0)), math.ulp(0.0))
    flipped: Array = moved > 1e-5 * top
    gained = flipped & (np.abs(output.mine) > np.abs(output.golden)).reshape(-1)
    lost = flipped & ~gained
    for one in arguments:
        x = one.golden.reshape(-1)
        values = x[gained], x[lost]
        if (
            all(side.size for side in values)
            and _are_near(*values, one.margin)
            and _are_near(*values[::-1], one.margin)
        ):
            return flipped
    return None


def _cancelled(inputs: Sequence[Both], output: Both, is_mean: bool) -> Array | None:
    """Sums that are rounding alone in both runs; None where none is, or where it is not clear what is summed up."""
    if not inputs or not output.is_real or output.mine.shape != output.golden.shape:
        return None
    terms = inputs[0]
    axes = _summed_axes(terms.mine, output.mine)
    if not terms.is_real or terms.mine.shape != terms.golden.shape or axes is None:
        return None
    epsilon = max(bounds_of(*one.dtypes, None).epsilon for one in (terms, output))
    noise = np.ones(output.mine.size, bool)
    for values, found in ((terms.mine, output.mine), (terms.golden, output.golden)):
        size = np.abs(values).sum(axis=axes).reshape(-1) / (values.size / found.size if is_mean else 1.0)
        noise &= np.abs(found).reshape(-1) <= ROUNDINGS * epsilon * size
    return noise if noise.any() else None


def keeps_errors(inputs: Sequence[TensorResult], output: TensorResult) -> bool:
    """Whether no element of a sum or difference is further off than the elements that it is made of."""
    came_in = sum(tensor.metrics.worst_error for tensor in inputs if tensor.metrics is not None)
    return output.metrics is not None and output.metrics.worst_error <= EQUAL * came_in


def multiplies(tensors: Sequence[TensorResult], output: Both) -> bool:
    """Whether both results are the products of what their runs have read: elements that are large on both sides may
    carry most of the errors.   Raises: FormatError, OSError.
    """
    inputs = [Both.of(tensor) for tensor in tensors]
    if len(inputs) != 2 or not all(one.is_real for one in (*inputs, output)):
        return False
    margin = ROUNDINGS * bounds_of(*output.dtypes, None).epsilon
    for sides, made in (
        ([one.mine for one in inputs], output.mine), ([one.golden for one in inputs], output.golden),
    ):  # fmt: skip
        if not all(side.shape in (made.shape, ()) for side in sides):
            return False
        if not np.allclose(sides[0] * sides[1], made, rtol=margin, atol=margin * float(np.abs(made).max(initial=0.0))):
            return False
    return True


def raises_errors(inputs: Sequence[Both], output: Both) -> bool:
    """Whether a result is no further off than exponentials of an operand are by its error: of large scores a small
    relative error is a large one of what a softmax makes of them.
    """
    if any(one.mine.shape != output.mine.shape or not one.is_real for one in (*inputs, output)):
        return False
    raised = [one for one in inputs if len(inputs) == 1 or _is_logarithm(one.golden)]
    factors = [one for one in inputs if not any(one is each for each in raised)]
    size = max(float(np.abs(one.golden).max(initial=0.0)) for one in factors or (output,))
    error = max(map(_worst, raised), default=0.0)
    return _worst(output) <= EQUAL * (sum(map(_worst, factors)) + size * math.expm1(2 * min(error, 1.0)))


def _worst(both: Both) -> float:
    with np.errstate(invalid="ignore"):
        return float(np.abs(both.mine - both.golden).max(initial=0.0))


def _is_logarithm(x: Array) -> bool:
    """Whether elements are logarithms of chances, which add up to 1 along an axis."""
    with np.errstate(over="ignore"):
        sums = (np.exp(x).sum(axis) for axis in range(x.ndim))
        return any(bool((np.abs(one - 1) < _OF_CHANCES).all()) for one in sums)


def normalised(operator: Operator, output: Both) -> Array | None:
    """The elements of small gradients, where those of the largest made the same step: the epsilon by which an optimizer
    divides stands in different places in libraries.
    """
    of_its_size = [one for one in operator.inputs.values() if math.prod(host_shape(one)) == output.mine.size]
    if len(of_its_size) < 2 or not output.is_real:
        return None
    before, gradient = (_numbers(one.load_host()).reshape(-1) for one in (of_its_size[0], of_its_size[-1]))
    return small_gradients(gradient, before, output.mine.reshape(-1), output.golden.reshape(-1))


def _summed_axes(x: Array, total: Array) -> tuple[int, ...] | None:
    """Axes over which a tensor is summed up, by the shapes; None where several would fit, or none."""
    found = set()
    for count in range(1, x.ndim + 1):
        for axes in itertools.combinations(range(x.ndim), count):
            kept = tuple(size for axis, size in enumerate(x.shape) if axis not in axes)
            held = tuple(1 if axis in axes else size for axis, size in enumerate(x.shape))
            if total.shape in (kept, held):
                found.add(tuple(axis for axis in axes if x.shape[axis] != 1))
    return found.pop() if len(found) == 1 else None


def _are_near(values: Array, others: Array, margin: float) -> bool:
    """Whether each value has another one within the margin."""
    ordered = np.sort(others)
    at = np.searchsorted(ordered, values)
    left = np.abs(values - ordered[np.maximum(at - 1, 0)])
    right = np.abs(values - ordered[np.minimum(at, ordered.size - 1)])
    return bool((np.minimum(left, right) <= margin).all())


def _selected(arguments: Sequence[Both], output: Both) -> Array | None:
    """Indices that differ name elements that are nearly the same."""
    flipped: Array = (output.mine != output.golden).reshape(-1)
    for one in arguments:
        # Indices of one side alone may be none: then nothing pairs.
        for mine, golden in zip(_picked(one.mine, output.mine), _picked(one.golden, output.golden), strict=False):
            if bool((np.abs(mine - golden).reshape(-1) <= one.margin).all()):
                return flipped
    return None


def _picked(x: Array, index: Array) -> Iterator[Array]:
    """The elements that indices name, in each way in which the shapes allow it: along an axis, in each plane, of all.

    Edges: indices past the end name nothing.
    """
    if index.size == 0 or index.min() < 0:
        return
    for axis in range(x.ndim):
        rest = x.shape[:axis] + x.shape[axis + 1 :]
        along = np.expand_dims(index, axis) if index.shape == rest else index
        if along.ndim == x.ndim and along.shape[:axis] + along.shape[axis + 1 :] == rest:
            yield np.take_along_axis(x, np.minimum(along, x.shape[axis] - 1).astype(np.intp), axis)
    if x.ndim > _PLANE and index.ndim == x.ndim and index.shape[:-_PLANE] == x.shape[:-_PLANE]:
        planes = x.reshape(-1, x.shape[-1] * x.shape[-2])
        flat = np.minimum(index.reshape(planes.shape[0], -1), planes.shape[1] - 1).astype(np.intp)
        yield np.take_along_axis(planes, flat, 1)
    yield x.reshape(-1)[np.minimum(index.reshape(-1), x.size - 1).astype(np.intp)]
