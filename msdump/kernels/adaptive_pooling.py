"""Adaptive mean pooling of pictures: a product with one matrix of parts for each axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from msdump.arrays import Array
from msdump.graph.autodiff import GradBuilder, Grads, def_bprop
from msdump.graph.graph import Node
from msdump.graph.primitive import Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.kernels.checks import FLOATS, expect, expect_count, expect_dtype
from msdump.kernels.workspace import compute_type

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


def _parts(length: int, count: int, dtype: np.dtype[np.generic]) -> Array:
    """(count, length): row i is the mean of elements floor(i * length / count) to ceil((i + 1) * length / count)."""
    matrix = np.zeros((count, length), dtype)
    for row in range(count):
        start, stop = row * length // count, -(-(row + 1) * length // count)
        matrix[row, start:stop] = 1.0 / (stop - start)
    return matrix


@def_kernel("AdaptiveAvgPool2D")
def _pool(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Edges: where the parts do not divide the picture they overlap."""
    (x,), (height, width) = inputs, _pair(attrs, "output_size")
    wide = compute_type(x.dtype)
    rows, columns = _parts(x.shape[-2], height, wide), _parts(x.shape[-1], width, wide)
    np.copyto(out[0], rows @ x.astype(wide, copy=False) @ columns.T, casting="same_kind")


@def_kernel("AdaptiveAvgPool2DGrad")
def _spread(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    (dy,), (height, width) = inputs, _pair(attrs, "input_size")
    wide = compute_type(dy.dtype)
    rows, columns = _parts(height, dy.shape[-2], wide), _parts(width, dy.shape[-1], wide)
    np.copyto(out[0], rows.T @ dy.astype(wide, copy=False) @ columns, casting="same_kind")


@def_bprop("AdaptiveAvgPool2D")
def _pool_bprop(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    if outer[0] is None:
        return [None]
    return [builder.add("AdaptiveAvgPool2DGrad", [outer[0]], {"input_size": node.inputs[0].type.shape[-2:]})]


@def_bprop("AdaptiveAvgPool2DGrad")
def _spread_bprop(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    if outer[0] is None:
        return [None]
    return [builder.add("AdaptiveAvgPool2D", [outer[0]], {"output_size": node.inputs[0].type.shape[-2:]})]
