"""Pooling over (N, C, H, W): every plane by itself.

Planes are taken in blocks that fit the cache, shared out over the threads, and turned so that the plane is the last
axis: whatever the stride of the window, every operation then runs over contiguous memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np

from msdump.graph.graph import Node, Value
from msdump.graph.primitive import Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.checks import FLOATS, expect, expect_count, expect_dtype
from msdump.mindspore.kernels.threads import blocks, split
from msdump.mindspore.kernels.torch_operator import gradient_of, torch_bprop, torch_of, torch_operator
from msdump.mindspore.kernels.window import Window, expect_images, expect_nchw, pair, window_of
from msdump.mindspore.kernels.workspace import compute_type, quiet, scratch
from msdump.mindspore.program.autodiff import (
    GradBuilder,
    Grads,
    def_bprop,
    one_operator,
    outer_gradient,
    same_attributes,
)
from msdump.tensors.arrays import Array

# Elements of one block. Planes may be so large that a block of the fewest planes worth turning exceeds it.
BLOCK_SIZE = 1 << 16
_FEWEST_PLANES = 32
_LARGEST_BLOCK = 1 << 22

def_primitive("MaxPool", ("x",), grad_scope="gradMaxPool-meta")
def_primitive("MaxPoolGrad", ("x_origin", "out_origin", "grad"))


# -- shape rules --------------------------------------------------------------------------------------


def _window(shape: Sequence[int], attrs: Attrs) -> Window:
    kernel = pair(attrs, "kernel_size")
    return window_of(attrs, (shape[2], shape[3]), kernel, pair(attrs, "strides", 1))


@def_infer("MaxPool")
def _pool_type(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: kernel_size, strides, pad_mode "valid", "same", or "pad" with pad (top, bottom, left, right)."""
    expect_count(types, 1)
    expect_nchw(attrs)
    expect_images(types[0], "x")
    x = types[0].shape
    window = _window(x, attrs)
    (height, width), (top, bottom, left, right) = window.kernel, window.padding
    # No window may hold padding alone: it would have neither a largest element nor a mean.
    is_right = max(top, bottom) < height and max(left, right) < width
    expect(is_right, f"pad below the kernel_size {window.kernel}", window.padding)
    return (TensorType(types[0].dtype, (x[0], x[1], *window.output)),)


@def_infer("MaxPoolGrad")
def _pool_grad_type(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: those of the pooling. `out_origin` and `grad` have the type of its result."""
    expect_count(types, 3)
    (pooled,) = _pool_type(types[:1], attrs)
    for name, type in zip(("out_origin", "grad"), types[1:], strict=True):
        expect(type == pooled, f"{name} {pooled}", type)
    return (types[0],)


# -- planes -------------------------------------------------------------------------------------------


def _planes(array: Array) -> Array:
    """(N, C, H, W) -> (N * C, H, W), the same memory."""
    return array.reshape(array.shape[0] * array.shape[1], *array.shape[2:])


def _each_block(x: Array, work: Callable[[slice], None]) -> None:
    """`work(planes)` on blocks whose edges depend on the shape only."""
    planes, size = x.shape[0], x.shape[1] * x.shape[2]
    count = min(max(BLOCK_SIZE // size, _FEWEST_PLANES), _LARGEST_BLOCK // size)
    cuts = list(blocks(planes, count))

    def part(start: int, stop: int) -> None:
        for cut in cuts[start:stop]:
            work(cut)

    split(len(cuts), x.size, part)


def _turned(planes: Array, name: str) -> Array:
    """(planes, H, W) -> scratch (H, W, planes) in the compute dtype."""
    count, height, width = planes.shape
    turned = scratch(name, (height, width, count), compute_type(planes.dtype))
    np.copyto(turned, planes.transpose(1, 2, 0), casting="unsafe")
    return turned


def _padded(planes: Array, window: Window, fill: float) -> Array:
    """(planes, H, W) -> scratch (H + padding, W + padding, planes) in the compute dtype, `fill` around."""
    if not window.is_padded:
        return _turned(planes, "pool.padded")
    padded = scratch("pool.padded", _padded_shape(planes, window), compute_type(planes.dtype))
    padded.fill(fill)
    np.copyto(_inner(padded, window, planes), planes.transpose(1, 2, 0), casting="unsafe")
    return padded


def _padded_shape(planes: Array, window: Window) -> tuple[int, int, int]:
    top, bottom, left, right = window.padding
    count, height, width = planes.shape
    return height + top + bottom, width + left + right, count


def _inner(padded: Array, window: Window, planes: Array) -> Array:
    """The part of a padded block that is not padding: (H, W, planes)."""
    (top, _, left, _), (_, height, width) = window.padding, planes.shape
    return padded[top : top + height, left : left + width]


def _store(turned: Array, planes: Array) -> None:
    """(H, W, planes) -> (planes, H, W), rounded to its dtype."""
    np.copyto(planes, turned.transpose(2, 0, 1), casting="unsafe")


def _rows(array: Array, window: Window, i: int) -> Array:
    """Row `i` of every window: (oh, W, planes)."""
    stride, count = window.stride[0], window.output[0]
    return array[i : i + (count - 1) * stride + 1 : stride]


def _columns(array: Array, window: Window, j: int) -> Array:
    """Column `j` of every window: (rows, ow, planes)."""
    stride, count = window.stride[1], window.output[1]
    return array[:, j : j + (count - 1) * stride + 1 : stride]


def _taps(array: Array, window: Window) -> Iterator[Array]:
    """Element (i, j) of every window, row by row: (oh, ow, planes) each."""
    for i in range(window.kernel[0]):
        rows = _rows(array, window, i)
        for j in range(window.kernel[1]):
            yield _columns(rows, window, j)


def _fold(ufunc: Any, x: Array, window: Window) -> Array:
    """Every window of a padded block reduced with `ufunc`, first its rows, then its columns: (oh, ow, planes)."""
    tall = scratch("pool.rows", (window.output[0], *x.shape[1:]), x.dtype)
    np.copyto(tall, _rows(x, window, 0))
    for i in range(1, window.kernel[0]):
        ufunc(tall, _rows(x, window, i), out=tall)
    result = scratch("pool.result", (*window.output, x.shape[2]), x.dtype)
    np.copyto(result, _columns(tall, window, 0))
    for j in range(1, window.kernel[1]):
        ufunc(result, _columns(tall, window, j), out=result)
    return result


# -- maximum ------------------------------------------------------------------------------------------


@def_kernel("MaxPool")
@quiet
def _max_pool(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Edges: padding never wins; NaN wins over everything."""
    window = _window(inputs[0].shape, attrs)
    x, y = _planes(inputs[0]), _planes(out[0])

    def work(planes: slice) -> None:
        _store(_fold(np.maximum, _padded(x[planes], window, -np.inf), window), y[planes])

    _each_block(x, work)


@def_kernel("MaxPoolGrad")
@quiet
def _max_pool_grad(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Each gradient goes to the first maximum of its window, counted row by row.

    Edges:  a window whose maximum is NaN gives its gradient to its first NaN; elements that never win get 0;
            padding never wins, not even against -Inf.
    """
    window = _window(inputs[0].shape, attrs)
    x, y, dy, dx = _planes(inputs[0]), _planes(inputs[1]), _planes(inputs[2]), _planes(out[0])

    def work(planes: slice) -> None:
        source = _padded(x[planes], window, -np.inf)
        best, gradient = _turned(y[planes], "pool.best"), _turned(dy[planes], "pool.gradient")
        total = scratch("pool.total", source.shape, source.dtype)
        total.fill(0)
        _give_to_first(source, best, gradient, window, total)
        _store(_inner(total, window, dx[planes]), dx[planes])

    _each_block(x, work)


def _inside(padded: Array, window: Window) -> Array:
    """(H + padding, W + padding, 1): true where a padded block is not padding."""
    top, bottom, left, right = window.padding
    height, width = padded.shape[:2]
    inside = np.zeros((height, width, 1), np.bool_)
    inside[top : height - bottom, left : width - right] = True
    return inside


def _give_to_first(source: Array, best: Array, gradient: Array, window: Window, total: Array) -> None:
    """Add each `gradient` to the place in `total` where `source` first equals `best`.

    Selection works on bits: a product with 0 would turn an infinite gradient into NaN.
    """
    bits = np.dtype(f"i{source.dtype.itemsize}")
    selected = scratch("pool.selected", gradient.shape, gradient.dtype)
    free = scratch("pool.free", gradient.shape, np.bool_)
    free.fill(True)
    is_nan = np.isnan(best)
    has_nan = bool(is_nan.any())
    inside = _inside(source, window) if window.is_padded and bool(np.isneginf(best).any()) else None
    insides: Iterable[Array | None] = repeat(None) if inside is None else _taps(inside, window)
    for value, target, is_inside in zip(_taps(source, window), _taps(total, window), insides, strict=False):
        is_hit = np.equal(value, best)
        if is_inside is not None:
            is_hit &= is_inside
        if has_nan:
            is_hit |= np.isnan(value) & is_nan
        is_hit &= free
        free ^= is_hit
        np.bitwise_and(gradient.view(bits), np.negative(is_hit.view(np.int8)), out=selected.view(bits))
        np.add(target, selected, out=target)


def _triple(x: Value, y: Value, dy: Value) -> Sequence[Value]:
    return x, y, dy


def_bprop("MaxPool")(one_operator("MaxPoolGrad", _triple, same_attributes))


def _grad_of_avg_pool_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    return [None, None, builder.add("AvgPool", [outer_gradient(outer)], node.primitive.attrs)]


def _differentiable_max_pool_grad(tensors: Sequence[Any], attrs: Attrs) -> list[Any]:
    """dy, each element of it where the largest of its window is."""
    torch = torch_of("MaxPoolGrad")
    x, _, dy = tensors
    window = _window(x.shape, attrs)
    top, bottom, left, right = window.padding
    with torch.enable_grad():
        free = x.detach().requires_grad_()
        padded = torch.nn.functional.pad(free, (left, right, top, bottom), value=float("-inf"))
        largest = torch.nn.functional.max_pool2d(padded, window.kernel, window.stride)
        return list(torch.autograd.grad(largest, free, dy, create_graph=True))


def_bprop("MaxPoolGrad")(torch_bprop(_differentiable_max_pool_grad))


# -- average ------------------------------------------------------------------------------------------


@torch_operator(
    "AvgPool",
    "x",
    infer=_pool_type,
    gradient=one_operator("AvgPoolGrad", _triple, same_attributes),
    scope="gradAvgPool-expand",
)
def _avg_pool(torch: Any, x: Any, **attrs: Any) -> Any:
    """Edges: padding counts neither in the sum nor in the number of elements."""
    window = _window(x.shape, attrs)
    top, bottom, left, right = window.padding
    mean, pad = (
        partial(torch.nn.functional.avg_pool2d, kernel_size=window.kernel, stride=window.stride),
        (left, right, top, bottom),
    )
    if not window.is_padded:
        return mean(x)
    # Sums over the number of elements of the image under each window.
    inside = torch.nn.functional.pad(torch.ones_like(x[:1, :1]), pad)
    return mean(torch.nn.functional.pad(x, pad), divisor_override=1) / mean(inside, divisor_override=1)


@torch_operator("AvgPoolGrad", "x_origin out_origin grad", infer=_pool_grad_type, gradient=_grad_of_avg_pool_grad)
def _avg_pool_grad(torch: Any, x: Any, y: Any, dy: Any, **attrs: Any) -> Any:
    """Every element of a window gets an equal share of its gradient."""
    return gradient_of("AvgPool", [x], attrs, [dy], 1)


# -- adaptive average: means of parts along one axis, then along the other ------------------------------

def_primitive("AdaptiveAvgPool2D", ("input",))
def_primitive("AdaptiveAvgPool2DGrad", ("dy",))


def _sizes(attrs: Attrs, name: str) -> tuple[int, int]:
    value = attrs[name]
    expect(isinstance(value, tuple) and len(value) == 2 and min(value) > 0, f"{name} of two positive sizes", value)
    return int(value[0]), int(value[1])


@def_infer("AdaptiveAvgPool2D", "AdaptiveAvgPool2DGrad")
def _adaptive_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: output_size; of the gradient input_size instead."""
    expect_count(types, 1)
    expect_dtype(types[0], FLOATS, "input")
    expect(len(types[0].shape) in (3, 4), "input of 3 or 4 axes", types[0].shape)
    size = _sizes(attrs, "output_size" if "output_size" in attrs else "input_size")
    expect(all((*types[0].shape[-2:], *size)), "axes to pool that are not empty", types[0].shape)
    return (TensorType(types[0].dtype, (*types[0].shape[:-2], *size)),)


def _parts(length: int, count: int) -> list[slice]:
    """Part i has elements floor(i * length / count) to ceil((i + 1) * length / count)."""
    return [slice(part * length // count, -(-(part + 1) * length // count)) for part in range(count)]


def _means(x: Array, count: int, axis: int) -> Array:
    """Means of parts along an axis: what is not finite reaches its own parts alone."""
    rows = np.moveaxis(x, axis, 0)
    means = np.empty((count, *rows.shape[1:]), x.dtype)
    for part, place in enumerate(_parts(len(rows), count)):
        np.add.reduce(rows[place], axis=0, out=means[part])
        means[part] /= place.stop - place.start
    return np.moveaxis(means, 0, axis)


def _spread_parts(dy: Array, length: int, axis: int) -> Array:
    """The gradient of `_means`."""
    rows = np.moveaxis(dy, axis, 0)
    spread = np.zeros((length, *rows.shape[1:]), dy.dtype)
    for row, place in zip(rows, _parts(length, len(rows)), strict=True):
        spread[place] += row / (place.stop - place.start)
    return np.moveaxis(spread, 0, axis)


@def_kernel("AdaptiveAvgPool2D")
@quiet
def _adaptive_pool(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Edges: where the parts do not divide the picture they overlap."""
    (x,), (height, width) = inputs, _sizes(attrs, "output_size")
    rows = _means(x.astype(compute_type(x.dtype), copy=False), height, -2)
    np.copyto(out[0], _means(rows, width, -1), casting="same_kind")


@def_kernel("AdaptiveAvgPool2DGrad")
@quiet
def _spread(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    (dy,), (height, width) = inputs, _sizes(attrs, "input_size")
    rows = _spread_parts(dy.astype(compute_type(dy.dtype), copy=False), height, -2)
    np.copyto(out[0], _spread_parts(rows, width, -1), casting="same_kind")


def_bprop("AdaptiveAvgPool2D")(
    one_operator("AdaptiveAvgPool2DGrad", attrs=lambda node: {"input_size": node.inputs[0].type.shape[-2:]})
)
def_bprop("AdaptiveAvgPool2DGrad")(
    one_operator("AdaptiveAvgPool2D", attrs=lambda node: {"output_size": node.inputs[0].type.shape[-2:]})
)
