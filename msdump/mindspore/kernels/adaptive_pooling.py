"""Adaptive mean pooling of pictures: means of parts along one axis, then along the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from msdump.graph.primitive import Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.checks import FLOATS, expect, expect_count, expect_dtype
from msdump.mindspore.kernels.workspace import compute_type, quiet
from msdump.mindspore.program.autodiff import def_bprop, one_operator
from msdump.tensors.arrays import Array

def_primitive("AdaptiveAvgPool2D", ("input",))
def_primitive("AdaptiveAvgPool2DGrad", ("dy",))


def _pair(attrs: Attrs, name: str) -> tuple[int, int]:
    value = attrs[name]
    expect(isinstance(value, tuple) and len(value) == 2 and min(value) > 0, f"{name} of two positive sizes", value)
    return int(value[0]), int(value[1])


@def_infer("AdaptiveAvgPool2D", "AdaptiveAvgPool2DGrad")
def _infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: output_size; of the gradient input_size instead."""
    expect_count(types, 1)
    expect_dtype(types[0], FLOATS, "input")
    expect(len(types[0].shape) in (3, 4), "input of 3 or 4 axes", types[0].shape)
    size = _pair(attrs, "output_size" if "output_size" in attrs else "input_size")
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
def _pool(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Edges: where the parts do not divide the picture they overlap."""
    (x,), (height, width) = inputs, _pair(attrs, "output_size")
    rows = _means(x.astype(compute_type(x.dtype), copy=False), height, -2)
    np.copyto(out[0], _means(rows, width, -1), casting="same_kind")


@def_kernel("AdaptiveAvgPool2DGrad")
@quiet
def _spread(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    (dy,), (height, width) = inputs, _pair(attrs, "input_size")
    rows = _spread_parts(dy.astype(compute_type(dy.dtype), copy=False), height, -2)
    np.copyto(out[0], _spread_parts(rows, width, -1), casting="same_kind")


def_bprop("AdaptiveAvgPool2D")(
    one_operator("AdaptiveAvgPool2DGrad", attrs=lambda node: {"input_size": node.inputs[0].type.shape[-2:]})
)
def_bprop("AdaptiveAvgPool2DGrad")(
    one_operator("AdaptiveAvgPool2D", attrs=lambda node: {"output_size": node.inputs[0].type.shape[-2:]})
)
