"""Statistics and running reductions: deviations, medians, norms, histograms, cumulative results."""

from __future__ import annotations

import math
from typing import Any

from msdump.mindspore.common.dtype import Type, float_type
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import as_tensor, call, execute
from msdump.mindspore.dispatch import cast as _cast
from msdump.mindspore.names import publish
from msdump.mindspore.ops.arithmetic import (
    abs,
    add,
    div,
    equal,
    exp,
    isnan,
    log,
    masked_fill,
    matmul,
    mul,
    pow,
    sqrt,
    square,
    sub,
)
from msdump.mindspore.ops.arrangement import narrow
from msdump.mindspore.ops.array import arange, cast, concat, expand_dims, ones, reshape, squeeze, transpose
from msdump.mindspore.ops.declaration import COMMON, FLOAT, operator, plain
from msdump.mindspore.ops.reductions import amax, amin, mean
from msdump.mindspore.ops.reductions import sum as _sum
from msdump.mindspore.releases import LARGEST

# -- deviations --------------------------------------------------------------------------------------------------------


@operator("ReduceStd", init="axis unbiased keep_dims", operands=FLOAT)
def _reduce_std(
    torch: Any, x: Tensor, axis: Any = (), unbiased: bool = True, keep_dims: bool = False
) -> tuple[Any, ...]:
    """Standard deviation and mean over axes, of all elements without axes."""
    axes = tuple(range(x.ndim)) if axis in ((), None) else axis
    # Where there is nothing to divide by, the result is NaN.
    wide = torch.as_tensor(x).to(torch.promote_types(x.dtype, torch.float32))
    total = torch.sum(wide, axis=axes, keepdims=True)
    count = math.prod(x.shape) // max(math.prod(total.shape), 1)
    middle = total / count if count else total * math.nan
    squares = torch.sum(torch.square(torch.abs(wide - middle)), axis=axes, keepdims=True)
    freedom = count - int(unbiased)
    results = torch.sqrt(squares / freedom if freedom > 0 else squares * math.nan), middle
    return tuple((each if keep_dims else torch.squeeze(each, axes)).to(x.dtype) for each in results)


def std_mean(input: Tensor, axis: Any = None, ddof: Any = 0, keepdims: bool = False) -> tuple[Any, ...]:
    """Standard deviation and mean; the sum of squares is divided by the number of elements less ddof."""
    if ddof in (0, 1):
        return tuple(_reduce_std(input, () if axis is None else axis, bool(ddof), keepdims))
    variance, middle = var_mean(input, axis, ddof, keepdims)
    return sqrt(variance), middle


def var_mean(input: Tensor, axis: Any = None, ddof: Any = 0, keepdims: bool = False) -> tuple[Any, ...]:
    """Variance and mean; the sum of squares is divided by the number of elements less ddof.

    Not the square of the deviation: its gradient divides by the deviation, which may be 0.
    """
    numbers = input if input.dtype in float_type else _cast(input, "float32")
    squares = _sum(square(sub(numbers, mean(numbers, axis, True))), axis, keepdims)
    middle = mean(numbers, axis, keepdims)
    return div(squares, max(input.size // max(middle.size, 1) - ddof, 0)), middle


def std(input: Tensor, axis: Any = None, ddof: Any = 0, keepdims: bool = False) -> Any:
    """Standard deviation over axes."""
    return std_mean(input, axis, ddof, keepdims)[0]


def var(input: Tensor, axis: Any = None, ddof: Any = 0, keepdims: bool = False) -> Any:
    """Variance over axes."""
    return var_mean(input, axis, ddof, keepdims)[0]


def cov(input: Tensor, *, correction: Any = 1, fweights: Any = None, aweights: Any = None) -> Tensor:
    """How rows vary together, over columns that count `fweights` times and weigh `aweights`."""
    rows = reshape(input if input.dtype in float_type else _cast(input, "float32"), (-1, input.shape[-1]))
    importance = ones(rows.shape[1:], rows.dtype) if aweights is None else cast(aweights, rows.dtype)
    weights = importance if fweights is None else mul(importance, cast(fweights, rows.dtype))
    total = _sum(weights)
    apart = sub(rows, div(_sum(mul(rows, weights), 1, True), total))
    taken = correction if aweights is None else div(mul(_sum(mul(weights, importance)), correction), total)
    return squeeze(div(matmul(mul(apart, weights), transpose(apart, (1, 0))), sub(total, taken)))


# -- order -------------------------------------------------------------------------------------------------------------


@operator("Median", init="global_median axis keep_dims ignore_nan")
def _median(
    torch: Any, x: Tensor, global_median: bool = False, axis: int = 0, keep_dims: bool = False, ignore_nan: bool = False
) -> tuple[Any, ...]:
    """The middle element along an axis, of two the smaller, and its place; the global one has place 0."""
    function = torch.nanmedian if ignore_nan else torch.median
    if not global_median:
        return tuple(function(x, axis, keep_dims))
    return function(x), torch.zeros((), dtype=torch.int64, device=getattr(x, "device"))  # noqa: B009


def median(input: Tensor, axis: int = -1, keepdims: bool = False) -> Any:
    """The middle element along an axis, of two the smaller, and its place; int64."""
    return _median(input, False, axis, keepdims)


@operator("Quantile", init="dim keep_dims ignore_nan")
def _quantile(
    torch: Any, input: Tensor, q: Tensor, dim: int | None = None, keep_dims: bool = False, ignore_nan: bool = False
) -> Any:
    """Quantiles along an axis, of all elements without one, between neighbours in proportion."""
    function = torch.nanquantile if ignore_nan else torch.quantile
    return function(input, q, dim, keep_dims)


def quantile(input: Tensor, q: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """Quantiles along an axis, of all elements without one, between neighbours in proportion."""
    return _quantile(input, as_tensor(q, None if isinstance(q, Tensor) else input.type_.dtype), axis, keepdims)


def nanquantile(input: Tensor, q: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """As `quantile`, of the elements that are numbers."""
    return _quantile(input, as_tensor(q, None if isinstance(q, Tensor) else input.type_.dtype), axis, keepdims, True)


def aminmax(input: Tensor, *, axis: Any = 0, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The smallest and the largest elements along an axis; None: of all."""
    return amin(input, axis, keepdims), amax(input, axis, keepdims)


# -- sums and norms ----------------------------------------------------------------------------------------------------


def nansum(input: Tensor, axis: Any = None, keepdims: bool = False, dtype: Type | None = None) -> Tensor:
    """The sum of the elements that are numbers."""
    return _sum(masked_fill(input, isnan(input), 0), axis, keepdims, dtype=dtype)


def logsumexp(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """log(sum(exp(input))) that does not overflow."""
    axes = plain(dim, "dim")
    if LARGEST.is_in_force or not isinstance(axes, int):
        largest = call("ReduceMax", input, axis=axes, keep_dims=True)
    else:
        largest = execute("ArgMaxWithValue", [input], {"axis": axes, "keep_dims": True})[1]
    result = log(_sum(exp(sub(input, largest)), axes, keepdim))
    return add(result, largest if keepdim else squeeze(largest, axes))


@operator("LpNorm", init="axis p keep_dims epsilon", operands=FLOAT)
def _lp_norm(
    torch: Any, input: Tensor, axis: Any = (), p: float = 2, keep_dims: bool = False, epsilon: float = 1e-12
) -> Any:
    """sum(|input| ** p) ** (1 / p) over axes, `epsilon` where it is less."""
    axes = axis if axis not in ((), None) else tuple(range(input.ndim))
    return torch.clamp(torch.linalg.vector_norm(input, p, axes, keep_dims), min=epsilon)


@operator("NuclearNorm", init="dim keepdim")
def _nuclear_norm(torch: Any, x: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The sum of the singular values of matrices."""
    return torch.linalg.matrix_norm(x, "nuc", (-2, -1) if dim is None else dim, keepdim)


@operator("EuclideanNorm", init="keep_dims", operands=FLOAT)
def _euclidean_norm(torch: Any, x: Tensor, axes: Any, keep_dims: bool = False) -> Any:
    """The square root of the sum of squares over axes."""
    return torch.linalg.vector_norm(x, 2, axes, keep_dims)


@operator("MatrixNorm", operands=FLOAT)
def _matrix_norm(torch: Any, A: Tensor, ord: Any, dim: Any, keepdim: bool) -> Any:
    """A norm of matrices: sums of rows or columns, or singular values."""
    return torch.linalg.matrix_norm(A, ord, dim, keepdim)


def norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Type | None = None) -> Any:
    """A norm of vectors (one axis) or matrices (two axes), as numpy.linalg.norm: "fro", "nuc", numbers, inf."""
    tensor = A if dtype is None else cast(A, dtype)
    axes = plain(dim, "dim") if dim is not None else None
    axes = (axes,) if isinstance(axes, int) else axes
    if ord is None or (ord == 2 and axes is not None and len(axes) == 1):
        return sqrt(_sum(square(tensor), axes, keepdim))
    if axes is None:
        axes = tuple(range(tensor.ndim))
    if len(axes) == 2:
        if ord == "fro":
            return sqrt(_sum(square(tensor), axes, keepdim))
        return _nuclear_norm(tensor, axes, keepdim) if ord == "nuc" else _matrix_norm(tensor, ord, axes, keepdim)
    if isinstance(ord, str) or len(axes) != 1:
        raise ValueError(f"For 'norm', the order {ord!r} does not go with {len(axes)} axes.")
    if ord == 0:
        return _sum(_cast(tensor != 0, tensor.type_.dtype), axes, keepdim)
    if math.isinf(ord):
        return (amax if ord > 0 else amin)(abs(tensor), axes, keepdim)
    if isinstance(ord, int) and ord > 0:
        return _lp_norm(tensor, axes, ord, keepdim)
    return pow(_sum(pow(abs(tensor), ord), axes, keepdim), 1 / ord)


def dist(input: Tensor, other: Tensor, p: Any = 2) -> Any:
    """The p-norm of the difference."""
    difference = sub(input, other)
    return abs(difference) if difference.ndim == 0 else _lp_norm(reshape(difference, (-1,)), 0, p)


@operator("L2Loss")
def _l2_loss(torch: Any, input_x: Tensor) -> Any:
    """Half of the sum of squares."""
    return torch.sum(torch.square(input_x)) / 2


@operator("SquaredDifference", operands=COMMON)
def _squared_difference(torch: Any, input_x: Tensor, input_y: Tensor) -> Any:
    """(input_x - input_y) ** 2."""
    return torch.square(torch.subtract(input_x, input_y))


@operator("LARSUpdate", init="epsilon hyperpara use_clip", has_gradient=False)
def _lars_update(
    torch: Any, weight: Tensor, gradient: Tensor, norm_weight: Tensor, norm_gradient: Tensor, weight_decay: Tensor,
    learning_rate: Tensor, epsilon: float = 1e-5, hyperpara: float = 1e-3, use_clip: bool = False,
) -> Any:  # fmt: skip
    """(g + decay * w) * hyperpara * |w| / (|g| + decay * |w| + epsilon); the factor is 1 where either norm is 0."""
    length, other = torch.sqrt(norm_weight), torch.sqrt(norm_gradient)
    factor = hyperpara * length / (other + weight_decay * length + epsilon)
    factor = torch.clamp(factor / learning_rate, 0, 1) if use_clip else factor
    factor = torch.where((length > 0) & (other > 0), factor, torch.ones_like(factor))
    return (gradient + weight_decay * weight) * factor


@operator("SquareSumAll")
def _square_sum_all(torch: Any, x: Tensor, y: Tensor) -> tuple[Tensor, Any]:
    return (x * x).sum(), (y * y).sum()


@operator("Renorm", operands=FLOAT)
def _renorm(torch: Any, input: Tensor, p: Any, dim: int, maxnorm: float) -> Any:
    """Slices along an axis scaled down to a p-norm of at most maxnorm."""
    return torch.renorm(input, p, dim, maxnorm)


def renorm(input: Tensor, p: Any, axis: int, maxnorm: float) -> Any:
    """Slices along an axis scaled down to a p-norm of at most maxnorm."""
    return _renorm(input, p, axis, maxnorm)


# -- running results ---------------------------------------------------------------------------------------------------


def _shifted(torch: Any, x: Any, axis: int, reverse: bool, running: Any, first: Any) -> Any:
    """With `first` not None exclusive: each place has the result of those before it."""
    x = torch.flip(x, (axis,)) if reverse else x
    result = running(x, axis)
    if first is not None and x.shape[axis]:
        start = torch.full_like(torch.narrow(x, axis, 0, 1), first)
        result = torch.cat([start, torch.narrow(result, axis, 0, x.shape[axis] - 1)], axis)
    return torch.flip(result, (axis,)) if reverse else result


def cumprod(input: Tensor, dim: int, dtype: Type | None = None) -> Any:
    """Running products along an axis."""
    result = call("CumProd", input, axis=plain(dim, "dim"))
    return result if dtype is None else cast(result, dtype)


@operator("CumulativeLogsumexp", init="exclusive reverse")
def _cumulative_logsumexp(torch: Any, x: Tensor, axis: int, exclusive: bool = False, reverse: bool = False) -> Any:
    """Running log(sum(exp(x))); exclusive: without the element itself, the least number first."""
    first = torch.finfo(x.dtype).min if exclusive else None
    return _shifted(torch, x, axis, reverse, torch.logcumsumexp, first)


@operator("Cummax", init="axis")
def cummax(torch: Any, input: Tensor, axis: int) -> tuple[Any, ...]:
    """Running maxima along an axis, and where each was met last; int64."""
    return tuple(torch.cummax(input, axis))


@operator("Cummin", init="axis")
def cummin(torch: Any, input: Tensor, axis: int) -> tuple[Any, ...]:
    """Running minima along an axis, and where each was met last; int32."""
    values, places = torch.cummin(input, axis)
    return values, places.int()


def diff(x: Tensor, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """Differences of neighbours along an axis, after `prepend`, before `append`.   Raises: RuntimeError for n > 1."""
    if n != 1:
        raise RuntimeError(f"For 'diff', 'n' must be 1, but got {n}")
    parts = [part for part in (prepend, x, append) if part is not None]
    whole = concat(parts, axis) if len(parts) > 1 else x
    size = whole.shape[axis]
    return sub(narrow(whole, axis, 1, size - 1), narrow(whole, axis, 0, size - 1))


# -- counts ------------------------------------------------------------------------------------------------------------


@operator("Histogram", init="bins min max", has_gradient=False)
def histc(torch: Any, input: Tensor, bins: int = 100, min: float = 0.0, max: float = 0.0) -> Any:
    """How many elements are in each of `bins` equal parts of a range; (0, 0): from the least to the greatest."""
    numbers: Any = input
    if torch.is_floating_point(input):
        return torch.histc(numbers.float() if numbers.itemsize == 2 else numbers, bins, min, max)
    return torch.histc(numbers.float(), bins, min, max).int()


@operator("HistogramFixedWidth", init="nbins dtype", has_gradient=False)
def _histogram_fixed_width(torch: Any, x: Tensor, range: Tensor, nbins: int, dtype: Any = "int32") -> Any:
    """How many elements are in each of `nbins` equal parts of a range; those outside count in the outer ones."""
    low, high = range[0], range[1]
    places = torch.floor((x - low) / (high - low) * nbins).clamp(0, nbins - 1).long()
    return torch.zeros(nbins, dtype=torch.int32, device=places.device).index_add(
        0, places.ravel(), torch.ones_like(places.ravel(), dtype=torch.int32)
    )


@operator("Bincount", init="", has_gradient=False)
def _bincount(torch: Any, array: Tensor, size: int, weights: Tensor) -> Any:
    """How often each number below `size` comes, or the sums of its weights."""
    is_inside = array < size
    ones = torch.ones_like(array, dtype=weights.dtype) if weights.shape[0] == 0 else weights
    places = torch.where(is_inside, array, 0).long()
    return torch.zeros(size, dtype=weights.dtype, device=places.device).index_add(0, places, ones * is_inside)


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each number comes, or the sums of its weights, up to the largest number; float32."""
    if input.ndim != 1:
        raise ValueError("For math function 'bincount', 'input' should be one-dimensional tensor.")
    if isinstance(minlength, bool) or not isinstance(minlength, int) or minlength < 0:
        raise ValueError(f"For 'bincount', 'minlength' should be >= 0 but got {minlength}.")
    numbers = input._concrete("the largest number", "Count with ops.one_hot and a sum")
    length = max(minlength, int(numbers.max()) + 1 if numbers.size else 0)
    is_equal = equal(_cast(input, "int64"), expand_dims(arange(length), -1))
    counted = _cast(is_equal, "float32") if weights is None else mul(is_equal, weights)
    return reshape(_sum(_cast(counted, "float32"), 1), (-1,))


publish(__name__)
