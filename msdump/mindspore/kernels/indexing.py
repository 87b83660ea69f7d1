"""Picking elements: slices with constant bounds, gathers with index tensors, and what puts gradients back.

Scattered sums add in the order of the index tensor, so they are the same on every run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import EllipsisType

import numpy as np

from msdump.errors import ExecutionError
from msdump.graph.graph import Node, Value
from msdump.graph.primitive import Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.checks import (
    INDICES,
    NUMBERS,
    attribute,
    expect,
    expect_count,
    expect_dtype,
    expect_same_dtype,
    expect_shape,
    int_tuple,
    normal_axis,
    shape_attribute,
)
from msdump.mindspore.kernels.workspace import compute_type
from msdump.mindspore.program.autodiff import Bprop, GradBuilder, Grads, def_bprop, outer_gradient
from msdump.tensors.arrays import Array

Index = tuple["int | slice | EllipsisType | None", ...]


# -- Slice --------------------------------------------------------------------------------------------

def_primitive("Slice", ("x",))
def_primitive("SliceGrad", ("dy", "x"))
def_primitive("Pad", ("x",))


def _window(attrs: Attrs, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """begin and size; a size of -1 reaches the end."""
    begin, size = shape_attribute(attrs, "begin"), shape_attribute(attrs, "size")
    expect(len(begin) == len(size) == len(shape), f"begin and size for {len(shape)} axes", (begin, size))
    size = tuple(n - b if s == -1 else s for b, s, n in zip(begin, size, shape, strict=True))
    fits = all(b >= 0 and s >= 0 and b + s <= n for b, s, n in zip(begin, size, shape, strict=True))
    expect(fits, f"begin and size inside of {shape}", (begin, size))
    return begin, size


def _window_index(attrs: Attrs, shape: tuple[int, ...]) -> Index:
    return tuple(slice(b, b + s) for b, s in zip(*_window(attrs, shape), strict=True))


@def_infer("Slice")
def _slice_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: begin, size (-1: to the end), one number per axis."""
    expect_count(types, 1)
    return (TensorType(types[0].dtype, _window(attrs, types[0].shape)[1]),)


@def_kernel("Slice")
def _slice(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    np.copyto(out[0], inputs[0][_window_index(attrs, inputs[0].shape)])


@def_bprop("Slice")
def _slice_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    attrs = node.primitive.attrs
    attrs = {"begin": attrs["begin"], "size": attrs["size"]}
    return [builder.add("SliceGrad", [outer_gradient(outer), node.inputs[0]], attrs)]


@def_infer("SliceGrad")
def _slice_grad_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: begin, size of the Slice."""
    expect_count(types, 2)
    expect_same_dtype(types)
    expect_shape(types[0], _window(attrs, types[1].shape)[1], "dy")
    return (types[1],)


@def_kernel("SliceGrad")
def _slice_grad_kernel(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    out[0][...] = 0
    out[0][_window_index(attrs, out[0].shape)] = inputs[0]


def _paddings(attrs: Attrs, ndim: int) -> tuple[tuple[int, int], ...]:
    pairs = tuple(int_tuple(pair, "paddings") for pair in attribute(attrs, "paddings"))
    fits = len(pairs) == ndim and all(len(pair) == 2 and min(pair) >= 0 for pair in pairs)
    expect(fits, f"{ndim} pairs of paddings >= 0", pairs)
    return tuple((pair[0], pair[1]) for pair in pairs)


@def_infer("Pad")
def _pad_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: paddings, a pair (before, after) per axis."""
    expect_count(types, 1)
    pairs = _paddings(attrs, types[0].ndim)
    shape = tuple(n + before + after for n, (before, after) in zip(types[0].shape, pairs, strict=True))
    return (TensorType(types[0].dtype, shape),)


@def_kernel("Pad")
def _pad(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Zeros around."""
    out[0][...] = 0
    befores = (before for before, _ in attrs["paddings"])
    out[0][tuple(slice(b, b + n) for b, n in zip(befores, inputs[0].shape, strict=True))] = inputs[0]


@def_bprop("Pad")
def _pad_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    shape = node.inputs[0].type.shape
    begin = tuple(before for before, _ in _paddings(node.primitive.attrs, len(shape)))
    return [builder.add("Slice", [outer_gradient(outer)], {"begin": begin, "size": shape})]


# -- StridedSlice -------------------------------------------------------------------------------------

_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")

def_primitive("StridedSlice", ("x",))
def_primitive("StridedSliceGrad", ("dy",))


def _strided_index(attrs: Attrs) -> Index:
    """The numpy index that begin, end, strides and the five bit masks mean."""
    begin, end = shape_attribute(attrs, "begin"), shape_attribute(attrs, "end")
    strides = int_tuple(attrs.get("strides", (1,) * len(begin)), "strides")
    fits = len(begin) == len(end) == len(strides) and 0 not in strides
    expect(fits, "begin, end and nonzero strides of one length", (begin, end, strides))
    masks = {name: int(attrs.get(name, 0)) for name in _MASKS}
    ellipses = bin(masks["ellipsis_mask"] & ((1 << len(begin)) - 1)).count("1")
    expect(ellipses <= 1, "at most one bit in ellipsis_mask", masks["ellipsis_mask"])
    index: list[int | slice | EllipsisType | None] = []
    for position, (first, last, stride) in enumerate(zip(begin, end, strides, strict=True)):
        is_set = {name: bool(mask >> position & 1) for name, mask in masks.items()}
        if is_set["ellipsis_mask"]:
            index.append(Ellipsis)
        elif is_set["new_axis_mask"]:
            index.append(None)
        elif is_set["shrink_axis_mask"]:
            index.append(first)
        else:
            start = None if is_set["begin_mask"] else first
            stop = None if is_set["end_mask"] else last
            index.append(slice(start, stop, stride))
    return tuple(index)


def _strided_shape(shape: tuple[int, ...], attrs: Attrs) -> tuple[int, ...]:
    index = _strided_index(attrs)
    used = [item for item in index if item is not None and item is not Ellipsis]
    expect(len(used) <= len(shape), f"at most {len(shape)} bounds for {shape}", len(used))
    # An array without memory of its own answers what shape the index gives.
    dummy: Array = np.broadcast_to(np.zeros((), np.bool_), shape)
    try:
        return tuple(dummy[index].shape)
    except IndexError:
        expect(False, f"bounds inside of {shape}", [item for item in index if isinstance(item, int)])
        raise


@def_infer("StridedSlice")
def _strided_slice_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: begin, end, strides; begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask.

    Edges: bounds are cut at the ends and counted from the end when negative, as in Python.
    """
    expect_count(types, 1)
    return (TensorType(types[0].dtype, _strided_shape(types[0].shape, attrs)),)


@def_kernel("StridedSlice")
def _strided_slice(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    np.copyto(out[0], inputs[0][_strided_index(attrs)])


@def_bprop("StridedSlice")
def _strided_slice_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    given = node.primitive.attrs
    attrs = {name: given[name] for name in ("begin", "end", "strides", *_MASKS) if name in given}
    attrs["shape"] = node.inputs[0].type.shape
    return [builder.add("StridedSliceGrad", [outer_gradient(outer)], attrs)]


@def_infer("StridedSliceGrad")
def _strided_slice_grad_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: those of the StridedSlice, and shape, its operand's."""
    expect_count(types, 1)
    shape = shape_attribute(attrs)
    expect_shape(types[0], _strided_shape(shape, attrs), "dy")
    return (TensorType(types[0].dtype, shape),)


@def_kernel("StridedSliceGrad")
def _strided_slice_grad_kernel(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    out[0][...] = 0
    out[0][_strided_index(attrs)] = inputs[0]


# -- Gather -------------------------------------------------------------------------------------------

def_primitive("Gather", ("params", "indices"))
def_primitive("UnsortedSegmentSum", ("x", "segment_ids"))


def _expect_inside(indices: Array, size: int, what: str) -> None:
    """Raises: ExecutionError for an index outside [-size, size)."""
    if indices.size and not (-size <= int(indices.min()) and int(indices.max()) < size):
        bad = indices[(indices < -size) | (indices >= size)]
        raise ExecutionError(f"expected {what} in [{-size}, {size}), got {int(bad.reshape(-1)[0])}.")


@def_infer("Gather")
def _gather_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: axis (0). The indices' shape stands in place of that axis."""
    expect_count(types, 2)
    expect_dtype(types[1], INDICES, "indices")
    shape = types[0].shape
    axis = normal_axis(attrs.get("axis", 0), len(shape))
    return (TensorType(types[0].dtype, (*shape[:axis], *types[1].shape, *shape[axis + 1 :])),)


@def_kernel("Gather")
def _gather(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Raises: ExecutionError for an index outside of the axis; negative ones count from the end."""
    params, indices = inputs
    axis = attrs.get("axis", 0)
    _expect_inside(indices, params.shape[axis], "indices")
    if out[0].size:
        np.take(params, indices, axis=axis, out=out[0], mode="wrap")


@def_bprop("Gather")
def _gather_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    """Sum of the rows that each index picked; for another axis than 0 that axis is brought to the front."""
    gradient = outer_gradient(outer)
    params, indices = node.inputs
    shape, index_ndim = params.type.shape, indices.type.ndim
    axis = normal_axis(node.primitive.attrs.get("axis", 0), len(shape))
    if axis:
        ndim = gradient.type.ndim
        picked = tuple(range(axis, axis + index_ndim))
        others = tuple(a for a in range(ndim) if a not in picked)
        gradient = builder.add("Transpose", [gradient], {"perm": (*picked, *others)})
    total = builder.add("UnsortedSegmentSum", [gradient, indices], {"num_segments": shape[axis]})
    if axis:
        perm = (*range(1, axis + 1), 0, *range(axis + 1, len(shape)))
        total = builder.add("Transpose", [total], {"perm": perm})
    return [total, None]


@def_infer("UnsortedSegmentSum")
def _segment_sum_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: num_segments, skips_negative (False). The leading axes of x are those of segment_ids."""
    expect_count(types, 2)
    expect_dtype(types[0], NUMBERS, "x")
    expect_dtype(types[1], INDICES, "segment_ids")
    lead, count = types[1].shape, attribute(attrs, "num_segments")
    expect(types[0].shape[: len(lead)] == lead, f"x of shape {lead} and more axes", types[0].shape)
    expect(isinstance(count, int) and count >= 0, "num_segments >= 0", count)
    return (TensorType(types[0].dtype, (count, *types[0].shape[len(lead) :])),)


@def_kernel("UnsortedSegmentSum")
def _segment_sum(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Edges: a segment without rows is 0. A negative id that reaches a segment from the end counts as that segment;
    with skips_negative, as in scripts, its rows count nowhere.
    """
    x, target = inputs[0], out[0]
    ids = inputs[1].reshape(-1)
    rows = x.reshape(ids.size, math.prod(target.shape[1:]))
    if attrs.get("skips_negative"):
        rows, ids = rows[ids >= 0], ids[ids >= 0]
    _expect_inside(ids, target.shape[0], "segment_ids")
    target[...] = 0
    if not rows.size:
        return
    ids = np.where(ids < 0, ids + target.shape[0], ids)
    order = np.argsort(ids, kind="stable")
    segments, starts = np.unique(ids[order], return_index=True)
    with np.errstate(all="ignore"):
        sums = np.add.reduceat(rows[order], starts, axis=0, dtype=compute_type(x.dtype))
        target[segments] = sums.reshape((segments.size, *target.shape[1:])).astype(target.dtype)


@def_bprop("UnsortedSegmentSum")
def _segment_sum_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    x, ids = node.inputs
    if not node.primitive.attrs.get("skips_negative"):
        return [builder.add("Gather", [outer_gradient(outer), ids], {"axis": 0}), None]
    zero = builder.constant(np.zeros((), np.int32 if ids.type.dtype == "int32" else np.int64), ids.type.dtype)
    places = builder.add("Maximum", [ids, zero])
    gradient = builder.add("Gather", [outer_gradient(outer), places], {"axis": 0})
    shape = (*ids.type.shape, *(1,) * (x.type.ndim - ids.type.ndim))
    is_counted = builder.add("Reshape", [builder.add("GreaterEqual", [ids, zero])], {"shape": shape})
    return [builder.add("Mul", [gradient, builder.add("Cast", [is_counted], {"dtype": x.type.dtype})]), None]


# -- GatherD ------------------------------------------------------------------------------------------

def_primitive("GatherD", ("x", "index"))
def_primitive("GatherDGradV2", ("x", "index", "grad"))


def _expect_index(x: TensorType, index: TensorType, attrs: Attrs) -> None:
    expect_dtype(index, INDICES, "index")
    dim = normal_axis(attrs.get("dim", 0), x.ndim, "dim")
    fits = index.ndim == x.ndim and all(a == dim or n <= x.shape[a] for a, n in enumerate(index.shape))
    expect(fits, f"index of a shape within {x.shape} but for axis {dim}", index.shape)


@def_infer("GatherD")
def _gather_d_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: dim (0). The result has the index's shape."""
    expect_count(types, 2)
    _expect_index(types[0], types[1], attrs)
    return (TensorType(types[0].dtype, types[1].shape),)


def _grid(index: Array, shape: tuple[int, ...], dim: int) -> tuple[Array, ...]:
    """Coordinates in `shape` of every element that `index` picks along `dim`."""
    _expect_inside(index, shape[dim], "index")
    grid: list[Array] = list(np.ogrid[tuple(slice(n) for n in index.shape)])
    grid[dim] = np.where(index < 0, index + shape[dim], index)
    return tuple(grid)


@def_kernel("GatherD")
def _gather_d(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Raises: ExecutionError for an index outside of the axis; negative ones count from the end."""
    x, index = inputs
    out[0][...] = x[_grid(index, x.shape, attrs.get("dim", 0) % x.ndim)]


@def_bprop("GatherD")
def _gather_d_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    attrs = {"dim": node.primitive.attrs.get("dim", 0)}
    return [builder.add("GatherDGradV2", [*node.inputs, outer_gradient(outer)], attrs), None]


@def_infer("GatherDGradV2")
def _gather_d_grad_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: dim of the GatherD."""
    expect_count(types, 3)
    expect_dtype(types[0], NUMBERS, "x")
    expect_same_dtype([types[0], types[2]])
    _expect_index(types[0], types[1], attrs)
    expect_shape(types[2], types[1].shape, "grad")
    return (types[0],)


@def_kernel("GatherDGradV2")
def _gather_d_grad_kernel(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    x, index, gradient = inputs
    target = out[0] if compute_type(x.dtype) == x.dtype else np.empty(x.shape, compute_type(x.dtype))
    target[...] = 0
    with np.errstate(all="ignore"):
        np.add.at(target, _grid(index, x.shape, attrs.get("dim", 0) % x.ndim), gradient.astype(target.dtype))
        if target is not out[0]:
            np.copyto(out[0], target, casting="unsafe")


# -- OneHot -------------------------------------------------------------------------------------------

def_primitive("OneHot", ("indices", "on_value", "off_value"))


@def_infer("OneHot")
def _one_hot_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: depth, axis (-1), where the new axis stands in the result."""
    expect_count(types, 3)
    expect_dtype(types[0], INDICES | {"uint8"}, "indices")
    expect_same_dtype(types[1:])
    for type, what in zip(types[1:], ("on_value", "off_value"), strict=True):
        expect(type.size == 1 and type.ndim <= 1, f"{what} of shape () or (1,)", type.shape)
    depth, shape = attribute(attrs, "depth"), types[0].shape
    expect(isinstance(depth, int) and depth >= 0, "depth >= 0", depth)
    axis = normal_axis(attrs.get("axis", -1), len(shape) + 1)
    return (TensorType(types[1].dtype, (*shape[:axis], depth, *shape[axis:])),)


@def_kernel("OneHot")
def _one_hot(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Edges: an index outside [0, depth) gives a row of off_value."""
    indices, on, off = inputs
    target = np.moveaxis(out[0], attrs.get("axis", -1), -1)
    target[...] = off.reshape(())
    np.copyto(target, on.reshape(()), where=indices[..., np.newaxis] == np.arange(target.shape[-1]))


@def_bprop("OneHot")
def _one_hot_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    return [None, None, None]


# -- gradients of gradients ----------------------------------------------------------------------------


def _linear(slot: int, op_type: str, names: Sequence[str]) -> Bprop:
    """An operator that is linear in operand `slot`: the operator whose gradient it is, with attributes `names`."""

    def bprop(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
        results: list[Value | None] = [None] * len(node.inputs)
        attrs = {name: value for name, value in node.primitive.attrs.items() if name in names}
        index = [node.inputs[1]] if op_type == "GatherD" else []
        results[slot] = builder.add(op_type, [outer_gradient(outer), *index], attrs)
        return results

    return bprop


def_bprop("SliceGrad")(_linear(0, "Slice", ("begin", "size")))
def_bprop("StridedSliceGrad")(_linear(0, "StridedSlice", ("begin", "end", "strides", *_MASKS)))
def_bprop("GatherDGradV2")(_linear(2, "GatherD", ("dim",)))
