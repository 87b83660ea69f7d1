"""Normalisation over a batch (BatchNorm) or over the last axes of each sample (LayerNorm).

float16 and bfloat16 compute in float32; sums of blocks add up in float64, always in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msdump.graph.graph import Node
from msdump.graph.primitive import Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.checks import FLOATS, expect, expect_count, expect_dtype, expect_shape, normal_axis
from msdump.mindspore.kernels.lines import apply_lines, dots, sums
from msdump.mindspore.kernels.threads import CHAIN_BLOCK, run_blocks
from msdump.mindspore.kernels.torch_operator import torch_bprop
from msdump.mindspore.kernels.workspace import compute_type, result_buffer, scratch, store
from msdump.mindspore.program.autodiff import GradBuilder, Grads, def_bprop
from msdump.tensors.arrays import Array

# -- BatchNorm ----------------------------------------------------------------------------------------

def_primitive(
    "BatchNorm",
    ("x", "scale", "offset", "mean", "variance"),
    ("y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2"),
    mutates=(3, 4),
)
def_primitive(
    "BatchNormGrad", ("dy", "x", "scale", "save_mean", "save_inv_variance", "reserve"), ("dx", "bn_scale", "bn_bias")
)


def _channel_view(shape: tuple[int, ...], attrs: Attrs) -> tuple[int, int, int]:
    """(before, channels, after) of the axes: NCHW has its channel second, NHWC last."""
    axis = 1 if attrs.get("format", "NCHW") == "NCHW" else len(shape) - 1
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def _expect_batch(x: TensorType, per_channel: Sequence[TensorType], attrs: Attrs) -> None:
    expect_dtype(x, FLOATS, "x")
    expect(x.ndim >= 2, "x with at least 2 axes", x.shape)
    format = attrs.get("format", "NCHW")
    expect(format in ("NCHW", "NHWC"), 'format "NCHW" or "NHWC"', repr(format))
    channels = _channel_view(x.shape, attrs)[1]
    for type in per_channel:
        expect_shape(type, (channels,), "a value per channel")
        expect_dtype(type, FLOATS, "a value per channel")
        expect(type.dtype == per_channel[0].dtype, f"values per channel of dtype {per_channel[0].dtype}", type)


@def_infer("BatchNorm")
def _batch_norm_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: is_training (False), epsilon (1e-5), momentum (0.1), format ("NCHW")."""
    expect_count(types, 5)
    _expect_batch(types[0], types[1:], attrs)
    epsilon = attrs.get("epsilon", 1e-5)
    expect(0 < epsilon <= 1, "epsilon in (0, 1]", epsilon)
    return (types[0], *(types[1],) * 4)


def _in_blocks(view: tuple[int, int, int], run: Callable[[int, int], None]) -> None:
    """`run(first, last)` for stretches of the axis before the channels."""
    run_blocks(view[0], run, max(1, CHAIN_BLOCK // max(1, view[1] * view[2])), view[1] * view[2])


def _channel_sums(
    view: tuple[int, int, int], wide: np.dtype[np.generic], terms: Callable[[int, int], Sequence[Array]], count: int
) -> list[Array]:
    """Per channel, in float64: the sums over all samples of the `count` arrays that `terms` gives for a block."""
    size = max(1, CHAIN_BLOCK // max(1, view[1] * view[2]))
    partial = np.zeros((count, -(-view[0] // size), view[1]))

    def block(first: int, last: int) -> None:
        for row, term in enumerate(terms(first, last)):
            partial[row, first // size] = np.add.reduce(np.add.reduce(term, axis=2, dtype=wide), axis=0)

    run_blocks(view[0], block, size, view[1] * view[2])
    return [np.add.reduce(rows, axis=0) for rows in partial]


def _block_of(name: str, array: Array, first: int, last: int, wide: np.dtype[np.generic]) -> Array:
    """A block in its compute dtype, copied only when it has another."""
    part = array[first:last]
    if part.dtype == wide:
        return part
    copy = scratch(f"normalization.{name}", part.shape, wide)
    np.copyto(copy, part, casting="unsafe")
    return copy


def _batch_moments(x: Array, wide: np.dtype[np.generic]) -> tuple[Array, Array]:
    """Mean and (biased) variance per channel of x (before, channels, after), in two passes."""
    view = (x.shape[0], x.shape[1], x.shape[2])
    count = np.float64(view[0] * view[2])
    (total,) = _channel_sums(view, wide, lambda f, t: [_block_of("x", x, f, t, wide)], 1)
    mean = total / count
    center = mean.astype(wide)[:, np.newaxis]

    def squares(first: int, last: int) -> Sequence[Array]:
        part = _block_of("x", x, first, last, wide)
        free = scratch("normalization.free", part.shape, wide)
        np.subtract(part, center, out=free)
        return [np.multiply(free, free, out=free)]

    (total,) = _channel_sums(view, wide, squares, 1)
    return mean, total / count


@def_kernel("BatchNorm")
def _batch_norm(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """y = (x - mean) / sqrt(variance + epsilon) * scale + offset.

    In training mean and (biased) variance are the batch's, all four small outputs show them, and the running ones,
    operands 3 and 4, move by `momentum` toward them. Otherwise the running ones are used and stay.
    Edges: no samples -> NaN statistics.
    """
    x, scale, offset, running_mean, running_variance = inputs
    view = _channel_view(x.shape, attrs)
    wide = compute_type(x.dtype)
    momentum, epsilon = float(attrs.get("momentum", 0.1)), float(attrs.get("epsilon", 1e-5))
    x3, y3 = np.ascontiguousarray(x).reshape(view), out[0].reshape(view)
    with np.errstate(all="ignore"):
        if attrs.get("is_training", False):
            mean, variance = _batch_moments(x3, wide)
            for running, batch in ((running_mean, mean), (running_variance, variance)):
                moved = running.astype(np.float64) * (1.0 - momentum) + batch * momentum
                np.copyto(running, moved, casting="unsafe")
        else:
            mean, variance = running_mean.astype(np.float64), running_variance.astype(np.float64)
        for target, values in zip(out[1:], (mean, variance, mean, variance), strict=True):
            np.copyto(target, values, casting="unsafe")
        factor = scale / np.sqrt(variance + epsilon)
        center = mean.astype(wide)[:, np.newaxis]
        slope, shift = factor.astype(wide)[:, np.newaxis], offset.astype(wide)[:, np.newaxis]

    def block(first: int, last: int) -> None:
        part = x3[first:last]
        result = y3[first:last]
        free = result if result.dtype == wide else scratch("normalization.free", part.shape, wide)
        np.subtract(part, center, out=free, dtype=wide)
        np.multiply(free, slope, out=free)
        np.add(free, shift, out=free)
        if free is not result:
            np.copyto(result, free, casting="unsafe")

    _in_blocks(view, block)


@def_bprop("BatchNorm")
def _batch_norm_bprop(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    """Gradient of y only; the statistics are not differentiated, as in MindSpore."""
    gradient = outer[0]
    if gradient is None:
        return [None] * 5
    x, scale, _, mean, variance = node.inputs
    attrs = {
        "is_training": bool(node.primitive.attrs.get("is_training", False)),
        "epsilon": node.primitive.attrs.get("epsilon", 1e-5),
        "format": node.primitive.attrs.get("format", "NCHW"),
    }
    saved = node.outputs[3:5] if attrs["is_training"] else (mean, variance)
    grads = builder.add_all("BatchNormGrad", [gradient, x, scale, saved[0], saved[1], saved[1]], attrs)
    return [*grads, None, None]


@def_infer("BatchNormGrad")
def _batch_norm_grad_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: is_training, epsilon, format of the BatchNorm."""
    expect_count(types, 6)
    _expect_batch(types[1], types[2:], attrs)
    expect(types[0] == types[1], f"dy of type {types[1]}", types[0])
    return (types[1], types[2], types[2])


@def_kernel("BatchNormGrad")
def _batch_norm_grad(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """dscale = sum(dy * x_hat), dbias = sum(dy), dx = scale / std * (dy - mean(dy) - x_hat * mean(dy * x_hat)).

    Outside of training mean and variance are constants: dx = scale / std * dy.
    """
    dy, x, scale, saved_mean, saved_variance = inputs[:5]
    view = _channel_view(x.shape, attrs)
    wide = compute_type(x.dtype)
    x3, dy3 = np.ascontiguousarray(x).reshape(view), np.ascontiguousarray(dy).reshape(view)
    dx3 = out[0].reshape(view)
    with np.errstate(all="ignore"):
        inverse = 1.0 / np.sqrt(saved_variance.astype(np.float64) + float(attrs.get("epsilon", 1e-5)))
    center = saved_mean.astype(wide)[:, np.newaxis]

    def products(first: int, last: int) -> Sequence[Array]:
        part, gradient = _block_of("x", x3, first, last, wide), _block_of("dy", dy3, first, last, wide)
        free = scratch("normalization.free", part.shape, wide)
        np.subtract(part, center, out=free)
        return [np.multiply(free, gradient, out=free), gradient]

    with np.errstate(all="ignore"):
        product, total = _channel_sums(view, wide, products, 2)
        np.copyto(out[1], product * inverse, casting="unsafe")
        np.copyto(out[2], total, casting="unsafe")
        slope = scale * inverse
        count = np.float64(view[0] * view[2])
        is_training = bool(attrs.get("is_training", False))
        along = -slope * product * inverse * inverse / count if is_training else np.zeros_like(slope)
        constant = -slope * total / count if is_training else np.zeros_like(slope)
        slope_wide, along_wide, constant_wide = (row.astype(wide)[:, np.newaxis] for row in (slope, along, constant))

    def block(first: int, last: int) -> None:
        gradient, result = dy3[first:last], dx3[first:last]
        free = scratch("normalization.free", gradient.shape, wide)
        if is_training:
            np.subtract(x3[first:last], center, out=free, dtype=wide)
            np.multiply(free, along_wide, out=free)
            np.add(free, constant_wide, out=free)
            scaled = np.multiply(gradient, slope_wide, out=scratch("normalization.scaled", gradient.shape, wide))
            np.add(free, scaled, out=free)
        else:
            np.multiply(gradient, slope_wide, out=free)
        np.copyto(result, free, casting="unsafe")

    _in_blocks(view, block)


# -- LayerNorm ----------------------------------------------------------------------------------------

def_primitive("LayerNorm", ("x", "gamma", "beta"), ("y", "mean", "variance"))
def_primitive("LayerNormGrad", ("x", "dy", "variance", "mean", "gamma"), ("pd_x", "pd_gamma", "pd_beta"))


def _layer_axes(x: TensorType | Array, attrs: Attrs) -> tuple[int, int]:
    """Where the normalised axes begin and where those of gamma and beta begin."""
    begin_norm = normal_axis(attrs.get("begin_norm_axis", 1), len(x.shape), "begin_norm_axis")
    begin_params = normal_axis(attrs.get("begin_params_axis", 1), len(x.shape), "begin_params_axis")
    return begin_norm, begin_params


def _layer_sizes(x: Array, attrs: Attrs) -> tuple[int, int, int]:
    """Elements that have one mean, that gamma has, and the larger of both: stretches of them stand alone."""
    width, params = (math.prod(x.shape[begin:]) for begin in _layer_axes(x, attrs))
    return width, params, max(width, params)


def _statistics_shape(shape: tuple[int, ...], begin: int) -> tuple[int, ...]:
    return shape[:begin] + (1,) * (len(shape) - begin)


@def_infer("LayerNorm")
def _layer_norm_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: begin_norm_axis (1), begin_params_axis (1), epsilon (1e-7)."""
    expect_count(types, 3)
    x = types[0]
    expect_dtype(x, FLOATS, "x")
    begin_norm, begin_params = _layer_axes(x, attrs)
    for type, what in zip(types[1:], ("gamma", "beta"), strict=True):
        expect_shape(type, x.shape[begin_params:], what)
        expect_dtype(type, FLOATS, what)
        expect(type.dtype == types[1].dtype, f"{what} of dtype {types[1].dtype}", type)
    statistics = TensorType(types[1].dtype, _statistics_shape(x.shape, begin_norm))
    return (x, statistics, statistics)


@def_kernel("LayerNorm")
def _layer_norm(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """y = (x - mean) / sqrt(variance + epsilon) * gamma + beta over the axes from begin_norm_axis on."""
    x, gamma, beta = inputs
    width, params, stretch = _layer_sizes(x, attrs)
    if x.size == 0:
        for statistic in out[1:]:
            statistic.fill(np.nan)
        return
    wide = compute_type(x.dtype)
    x2, y2 = x.reshape(-1, stretch), out[0].reshape(-1, stretch)
    mean, variance = (statistic.reshape(len(x2), -1) for statistic in out[1:])
    slope, shift = gamma.reshape(-1).astype(wide), beta.reshape(-1).astype(wide)
    count, epsilon = wide.type(width), wide.type(float(attrs.get("epsilon", 1e-7)))

    def block(first: int, last: int) -> None:
        lines = _block_of("x", x2, first, last, wide).reshape(-1, width)
        target = y2[first:last]
        result = result_buffer(target, "normalization.result")
        normal = result.reshape(lines.shape)
        center = sums(lines) / count
        np.subtract(lines, center[:, np.newaxis], out=normal)
        spread = dots(normal, normal) / count
        np.multiply(normal, np.reciprocal(np.sqrt(spread + epsilon))[:, np.newaxis], out=normal)
        scaled = result.reshape(-1, params)
        apply_lines(np.multiply, [scaled, slope], scaled)
        apply_lines(np.add, [scaled, shift], scaled)
        store(result, target)
        for statistic, values in ((mean, center), (variance, spread)):
            np.copyto(statistic[first:last].reshape(-1), values, casting="unsafe")

    run_blocks(len(x2), block, max(1, CHAIN_BLOCK // stretch), stretch)


@def_bprop("LayerNorm")
def _layer_norm_bprop(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    """Gradient of y only; mean and variance are not differentiated, as in MindSpore."""
    gradient = outer[0]
    if gradient is None:
        return [None] * 3
    x, gamma, _ = node.inputs
    _, mean, variance = node.outputs
    attrs = {"begin_norm_axis": 1, "begin_params_axis": 1, "epsilon": 1e-7, **node.primitive.attrs}
    return list(builder.add_all("LayerNormGrad", [x, gradient, variance, mean, gamma], attrs))


@def_infer("LayerNormGrad")
def _layer_norm_grad_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: those of the LayerNorm."""
    expect_count(types, 5)
    x, dy, variance, mean, gamma = types
    expect_dtype(x, FLOATS, "x")
    begin_norm, begin_params = _layer_axes(x, attrs)
    expect(dy == x, f"dy of type {x}", dy)
    for type, what in ((variance, "variance"), (mean, "mean")):
        expect_shape(type, _statistics_shape(x.shape, begin_norm), what)
        expect_dtype(type, FLOATS, what)
    expect_shape(gamma, x.shape[begin_params:], "gamma")
    expect_dtype(gamma, FLOATS, "gamma")
    return (x, gamma, gamma)


@def_kernel("LayerNormGrad")
def _layer_norm_grad(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """dgamma = sum(dy * x_hat), dbeta = sum(dy), dx = (g - mean(g) - x_hat * mean(g * x_hat)) / std, g = dy * gamma."""
    x, dy, variance, mean, gamma = inputs
    width, params, stretch = _layer_sizes(x, attrs)
    if x.size == 0:
        for gradient in out[1:]:
            gradient.fill(0)
        return
    wide = compute_type(x.dtype)
    x2, dy2, dx2 = (array.reshape(-1, stretch) for array in (x, dy, out[0]))
    slope, center = gamma.reshape(-1).astype(wide), mean.reshape(len(x2), -1).astype(wide)
    with np.errstate(all="ignore"):
        inverse = np.reciprocal(np.sqrt(variance.astype(wide) + wide.type(float(attrs.get("epsilon", 1e-7)))))
    inverse, count = inverse.reshape(len(x2), -1), wide.type(width)
    size = max(1, CHAIN_BLOCK // stretch)
    partial = np.zeros((2, -(-len(x2) // size), params))

    def block(first: int, last: int) -> None:
        """With everything but dbeta divided by the deviation from the start, no pass is needed for that at the end."""
        gradient = _block_of("dy", dy2, first, last, wide).reshape(-1, width)
        deviation = inverse[first:last].reshape(-1, 1)
        target = dx2[first:last]
        result = result_buffer(target, "normalization.result")
        scaled, free = result.reshape(gradient.shape), scratch("normalization.free", gradient.shape, wide)
        np.subtract(x2[first:last].reshape(-1, width), center[first:last].reshape(-1, 1), out=free, dtype=wide)
        np.multiply(gradient, deviation, out=scaled)
        per_param = [array.reshape(-1, params) for array in (scaled, free, gradient)]
        partial[0, first // size] = np.einsum("ij,ij->j", *per_param[:2])
        partial[1, first // size] = np.add.reduce(per_param[2], axis=0)
        apply_lines(np.multiply, [per_param[0], slope], per_param[0])
        along = dots(scaled, free)[:, np.newaxis] * deviation * deviation / count
        np.multiply(free, along, out=free)
        constant = sums(scaled)[:, np.newaxis] / count
        np.subtract(scaled, free, out=scaled)
        np.subtract(scaled, constant, out=scaled)
        store(result, target)

    run_blocks(len(x2), block, size, stretch)
    for gradient, rows in zip(out[1:], partial, strict=True):
        np.copyto(gradient, np.add.reduce(rows, axis=0).reshape(gradient.shape), casting="unsafe")


# -- gradients of gradients, by PyTorch --------------------------------------------------------------


def _differentiable_batch_norm_grad(tensors: Sequence[Any], attrs: Attrs) -> list[Any]:
    """In training the statistics are those of x, through which the gradient flows; else they are constants."""
    dy, x, scale, mean, variance, _ = tensors
    channel = 1 if attrs.get("format", "NCHW") == "NCHW" else x.ndim - 1
    others = [axis for axis in range(x.ndim) if axis != channel]
    line = [-1 if axis == channel else 1 for axis in range(x.ndim)]
    is_training = bool(attrs.get("is_training", False))
    if is_training:
        mean, variance = x.mean(others), x.var(others, unbiased=False)
    inverse = (variance.reshape(line) + attrs.get("epsilon", 1e-5)).rsqrt()
    normal = (x - mean.reshape(line)) * inverse
    free = dy
    if is_training:
        free = dy - dy.mean(others, keepdim=True) - normal * (dy * normal).mean(others, keepdim=True)
    return [scale.reshape(line) * inverse * free, (dy * normal).sum(others), dy.sum(others)]


def _differentiable_layer_norm_grad(tensors: Sequence[Any], attrs: Attrs) -> list[Any]:
    """Mean and variance are those of x, through which the gradient flows."""
    x, dy, _, _, gamma = tensors
    begin, begin_params = (attrs.get(name, 1) % x.ndim for name in ("begin_norm_axis", "begin_params_axis"))
    axes, outside = list(range(begin, x.ndim)), list(range(begin_params))
    inverse = (x.var(axes, unbiased=False, keepdim=True) + attrs.get("epsilon", 1e-7)).rsqrt()
    normal = (x - x.mean(axes, keepdim=True)) * inverse
    free = dy * gamma
    centered = free - free.mean(axes, keepdim=True) - normal * (free * normal).mean(axes, keepdim=True)
    sums = [each.sum(outside) if outside else each for each in (dy * normal, dy)]
    return [centered * inverse, *sums]


def_bprop("BatchNormGrad")(torch_bprop(_differentiable_batch_norm_grad))
def_bprop("LayerNormGrad")(torch_bprop(_differentiable_layer_norm_grad))
