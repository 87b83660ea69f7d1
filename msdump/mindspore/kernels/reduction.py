"""Reductions: `axis` (an int, a tuple, () for all) goes away, or stays with size 1 under `keep_dims`.

Sums of float16 and bfloat16 run in float32. Every order of additions is fixed by the shape alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from msdump.errors import OperandValueError
from msdump.graph.graph import Node, Value
from msdump.graph.primitive import Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.checks import (
    BOOLS,
    INDICES,
    NUMBERS,
    dtype_attribute,
    expect,
    expect_count,
    expect_dtype,
    normal_axes,
    normal_axis,
)
from msdump.mindspore.kernels.torch_operator import def_torch_operator, torch_of
from msdump.mindspore.kernels.workspace import compute_type
from msdump.mindspore.program.autodiff import GradBuilder, Grads, def_bprop, no_gradient, outer_gradient
from msdump.tensors.arrays import Array


def reduced_axes(attrs: Attrs, ndim: int) -> tuple[int, ...]:
    """Axes that a Reduce operator takes away; `skip_mode` makes () mean none instead of all."""
    axis = attrs.get("axis", ())
    if attrs.get("skip_mode", False) and axis == ():
        return ()
    return normal_axes(axis, ndim)


def kept_shape(shape: tuple[int, ...], axes: Sequence[int]) -> tuple[int, ...]:
    """`shape` with 1 in place of the reduced axes."""
    return tuple(1 if axis in axes else size for axis, size in enumerate(shape))


def _reduced_shape(shape: tuple[int, ...], axes: Sequence[int], attrs: Attrs) -> tuple[int, ...]:
    if attrs.get("keep_dims", False):
        return kept_shape(shape, axes)
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


_REDUCE = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd")
_REDUCE_BOOL = ("ReduceAll", "ReduceAny")
for _name in (*_REDUCE, *_REDUCE_BOOL):
    def_primitive(_name, ("x",))


@def_infer(*_REDUCE)
def _infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    expect_count(types, 1)
    expect_dtype(types[0], NUMBERS, "x")
    return (TensorType(types[0].dtype, _reduced_shape(types[0].shape, reduced_axes(attrs, types[0].ndim), attrs)),)


@def_infer("ReduceMax", "ReduceMin")
def _infer_extreme(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """The largest of no elements does not exist."""
    result = _infer(types, attrs)
    shape = types[0].shape
    if result[0].size and any(shape[axis] == 0 for axis in reduced_axes(attrs, len(shape))):
        raise OperandValueError(f"expected at least one element along the reduced axes, got {types[0]}.")
    return result


@def_infer(*_REDUCE_BOOL)
def _infer_bool(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    expect_count(types, 1)
    expect_dtype(types[0], BOOLS, "x")
    return (TensorType("bool", _reduced_shape(types[0].shape, reduced_axes(attrs, types[0].ndim), attrs)),)


def _reduce(ufunc: Any, x: Array, attrs: Attrs, out: Array, accumulator: Any) -> None:
    """`ufunc.reduce` into `out`."""
    axes = reduced_axes(attrs, x.ndim)
    target = out.reshape(kept_shape(x.shape, axes))
    with np.errstate(all="ignore"):
        if not axes:
            np.copyto(target, x)
        elif target.dtype == accumulator:
            ufunc.reduce(x, axis=axes, dtype=accumulator, out=target, keepdims=True)
        else:
            np.copyto(target, ufunc.reduce(x, axis=axes, dtype=accumulator, keepdims=True), casting="unsafe")


@def_kernel("ReduceSum")
def _reduce_sum(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Edges: empty -> 0; integers wrap."""
    _reduce(np.add, inputs[0], attrs, out[0], compute_type(inputs[0].dtype))


@def_kernel("ReduceProd")
def _reduce_prod(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Edges: empty -> 1; integers wrap."""
    _reduce(np.multiply, inputs[0], attrs, out[0], compute_type(inputs[0].dtype))


@def_kernel("ReduceMean")
def _reduce_mean(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Edges: empty -> NaN, for integers 0; integers truncate toward zero after a sum in 64 bits."""
    x, mean = inputs[0], out[0]
    axes = reduced_axes(attrs, x.ndim)
    count = math.prod(x.shape[axis] for axis in axes)
    is_integer = x.dtype.kind in "iu"
    with np.errstate(all="ignore"):
        if is_integer:
            total = np.add.reduce(x, axis=axes, dtype=np.int64 if x.dtype.kind == "i" else np.uint64)
            floor, rest = np.divmod(total, total.dtype.type(max(count, 1)))
            truncated = floor + ((total < 0) & (rest != 0))
            np.copyto(mean, np.reshape(truncated, mean.shape), casting="unsafe")
            return
        total = np.add.reduce(x, axis=axes, dtype=compute_type(x.dtype)) if axes else x.astype(compute_type(x.dtype))
        np.copyto(mean, np.reshape(np.true_divide(total, total.dtype.type(count)), mean.shape), casting="unsafe")


@def_kernel("ReduceMax")
def _reduce_max(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Edges: any NaN -> NaN."""
    if out[0].size:
        _reduce(np.maximum, inputs[0], attrs, out[0], inputs[0].dtype)


@def_kernel("ReduceMin")
def _reduce_min(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Edges: any NaN -> NaN."""
    if out[0].size:
        _reduce(np.minimum, inputs[0], attrs, out[0], inputs[0].dtype)


@def_kernel("ReduceAll")
def _reduce_all(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Edges: empty -> True."""
    _reduce(np.logical_and, inputs[0], attrs, out[0], inputs[0].dtype)


@def_kernel("ReduceAny")
def _reduce_any(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Edges: empty -> False."""
    _reduce(np.logical_or, inputs[0], attrs, out[0], inputs[0].dtype)


def spread(builder: GradBuilder, value: Value, shape: tuple[int, ...], axes: Sequence[int]) -> Value:
    """Undo a reduction: repeat `value` along the axes of `shape` that were reduced."""
    kept = kept_shape(shape, axes)
    if value.type.shape != kept:
        value = builder.add("Reshape", [value], {"shape": kept})
    if kept != shape:
        multiples = tuple(size if axis in axes else 1 for axis, size in enumerate(shape))
        # Tile repeats at least once.
        is_empty = 0 in multiples
        attrs = {"shape": shape} if is_empty else {"multiples": multiples}
        value = builder.add("BroadcastTo" if is_empty else "Tile", [value], attrs)
    return value


def _outer_and_axes(node: Node, outer: Grads) -> tuple[Value, tuple[int, ...], tuple[int, ...]]:
    gradient = outer_gradient(outer)
    shape = node.inputs[0].type.shape
    return gradient, shape, reduced_axes(node.primitive.attrs, len(shape))


@def_bprop("ReduceSum")
def _reduce_sum_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    gradient, shape, axes = _outer_and_axes(node, outer)
    return [spread(builder, gradient, shape, axes)]


@def_bprop("ReduceMean")
def _reduce_mean_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    gradient, shape, axes = _outer_and_axes(node, outer)
    count = builder.constant(math.prod(shape[axis] for axis in axes), gradient.type.dtype)
    return [builder.add("RealDiv", [spread(builder, gradient, shape, axes), count])]


@def_bprop("ReduceProd")
def _reduce_prod_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    """The product of the elements before and of those behind, so that no zero divides.   Source: MindSpore."""
    gradient, shape, axes = _outer_and_axes(node, outer)
    if not axes:
        return [gradient]
    x, kept = node.inputs[0], [axis for axis in range(len(shape)) if axis not in axes]
    rows, axis, perm = x, axes[0], (*kept, *axes)
    if len(axes) > 1:
        axis = len(kept)
        rows = builder.add("Reshape", [builder.add("Transpose", [x], {"perm": perm})], {
            "shape": (*(shape[each] for each in kept), math.prod(shape[each] for each in axes))
        })  # fmt: skip
    sides = [
        builder.add("CumProd", [rows], {"axis": axis, "exclusive": True, "reverse": is_reverse})
        for is_reverse in (False, True)
    ]
    others = builder.add("Mul", sides)
    if len(axes) > 1:
        turned = builder.add("Reshape", [others], {"shape": tuple(shape[each] for each in perm)})
        others = builder.add("Transpose", [turned], {"perm": tuple(perm.index(each) for each in range(len(perm)))})
    return [builder.add("Mul", [others, spread(builder, gradient, shape, axes)])]


def _extreme_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    """Elements that share the extreme share its gradient equally."""
    gradient, shape, axes = _outer_and_axes(node, outer)
    x, extreme = node.inputs[0], node.outputs[0]
    kept = kept_shape(shape, axes)
    if extreme.type.shape != kept:
        extreme = builder.add("Reshape", [extreme], {"shape": kept})
        gradient = builder.add("Reshape", [gradient], {"shape": kept})
    is_chosen = builder.add("Cast", [builder.add("Equal", [x, extreme])], {"dtype": x.type.dtype})
    count = is_chosen
    if axes:
        count = builder.add("ReduceSum", [is_chosen], {"axis": axes, "keep_dims": True})
    return [builder.add("Mul", [builder.add("Div", [gradient, count]), is_chosen])]


def_bprop("ReduceMax")(_extreme_grad)
def_bprop("ReduceMin")(_extreme_grad)


for _name in _REDUCE_BOOL:
    def_bprop(_name)(no_gradient)


# -- positions of extremes ----------------------------------------------------------------------------

_ARG = ("Argmax", "Argmin")
_ARG_WITH_VALUE = ("ArgMaxWithValue", "ArgMinWithValue")
for _name in _ARG:
    def_primitive(_name, ("x",))
for _name in _ARG_WITH_VALUE:
    def_primitive(_name, ("x",), ("index", "values"))


def _arg_axis(type: TensorType, attrs: Attrs, default: int) -> int:
    axis = normal_axis(attrs.get("axis", default), type.ndim)
    expect(type.shape[axis] > 0, f"at least one element along axis {axis}", type)
    return axis


def _arg_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: axis (-1), output_type (int32)."""
    axis = _arg_axis(types[0], attrs, -1)
    dtype = dtype_attribute(attrs, "output_type", "int32")
    expect(dtype in INDICES, "output_type int32 or int64", dtype)
    return (TensorType(dtype, types[0].shape[:axis] + types[0].shape[axis + 1 :]),)


@def_infer("Argmax")
def _argmax_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Source: MindSpore 2.7 on a CPU takes bools here, and none for Argmin."""
    expect_count(types, 1)
    expect_dtype(types[0], NUMBERS | BOOLS, "x")
    return _arg_infer(types, attrs)


@def_infer("Argmin")
def _argmin_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    expect_count(types, 1)
    expect_dtype(types[0], NUMBERS, "x")
    return _arg_infer(types, attrs)


@def_infer(*_ARG_WITH_VALUE)
def _arg_with_value_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: axis (0), keep_dims (False). The index comes first."""
    expect_count(types, 1)
    expect_dtype(types[0], NUMBERS, "x")
    axis = _arg_axis(types[0], attrs, 0)
    shape = _reduced_shape(types[0].shape, (axis,), attrs)
    return (TensorType("int32", shape), TensorType(types[0].dtype, shape))


def _positions(op_type: str, x: Array, axis: int) -> Array:
    """Index of the first extreme along `axis`; NaN counts as the extreme."""
    positions: Array = (np.argmax if op_type in ("Argmax", "ArgMaxWithValue") else np.argmin)(x, axis=axis)
    return positions


def _define_arg(op_type: str) -> None:
    @def_kernel(op_type)
    def kernel(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
        np.copyto(out[0], _positions(op_type, inputs[0], attrs.get("axis", -1)), casting="unsafe")

    @def_bprop(op_type)
    def bprop(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
        return [None]


def _define_arg_with_value(op_type: str) -> None:
    @def_kernel(op_type)
    def kernel(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
        x, axis = inputs[0], attrs.get("axis", 0)
        index = np.expand_dims(_positions(op_type, x, axis), axis)
        np.copyto(out[0], index.reshape(out[0].shape), casting="unsafe")
        np.copyto(out[1], np.take_along_axis(x, index, axis).reshape(out[1].shape))

    def_bprop(op_type)(_arg_with_value_grad)


def _arg_with_value_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    """The value's gradient goes to the position that was found."""
    gradient, x, index = outer[1], node.inputs[0], node.outputs[0]
    if gradient is None:
        return [None]
    axis = normal_axis(node.primitive.attrs.get("axis", 0), x.type.ndim)
    if node.primitive.attrs.get("keep_dims", False):
        index = builder.add("Squeeze", [index], {"axis": (axis,)})
    else:
        gradient = builder.add("ExpandDims", [gradient], {"axis": axis})
    on, off = builder.constant(1, x.type.dtype), builder.constant(0, x.type.dtype)
    chosen = builder.add("OneHot", [index, on, off], {"depth": x.type.shape[axis], "axis": axis})
    return [builder.add("Mul", [gradient, chosen])]


for _name in _ARG:
    _define_arg(_name)
for _name in _ARG_WITH_VALUE:
    _define_arg_with_value(_name)


# -- running sums -------------------------------------------------------------------------------------

def_primitive("CumSum", ("x",))


@def_infer("CumSum")
def _cumsum_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: axis, exclusive (False), reverse (False)."""
    expect_count(types, 1)
    expect_dtype(types[0], NUMBERS, "x")
    normal_axis(attrs.get("axis", 0), types[0].ndim)
    return (types[0],)


@def_kernel("CumSum")
def _cumsum(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    axis = attrs.get("axis", 0)
    x, y = np.moveaxis(inputs[0], axis, 0), np.moveaxis(out[0], axis, 0)
    if attrs.get("reverse", False):
        x, y = x[::-1], y[::-1]
    if attrs.get("exclusive", False):
        y[:1] = 0
        x, y = x[:-1], y[1:]
    with np.errstate(all="ignore"):
        np.copyto(y, np.add.accumulate(x, axis=0, dtype=compute_type(x.dtype)), casting="unsafe")


@def_bprop("CumSum")
def _cumsum_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    gradient = outer_gradient(outer)
    attrs = dict(node.primitive.attrs)
    attrs["reverse"] = not attrs.get("reverse", False)
    return [builder.add("CumSum", [gradient], attrs)]


# -- running products ---------------------------------------------------------------------------------


def _running_product_of_tensors(tensors: Sequence[Any], attrs: Attrs) -> Sequence[Any]:
    """Attrs: axis, exclusive (False): without the element itself, reverse (False): from the end."""
    torch = torch_of("CumProd")
    (x,) = tensors
    axis = normal_axis(attrs["axis"], x.ndim)
    x = torch.flip(x, (axis,)) if attrs.get("reverse") else x
    result = torch.cumprod(x, axis)
    if attrs.get("exclusive") and x.shape[axis]:
        first, before = torch.narrow(x, axis, 0, 1), torch.narrow(result, axis, 0, x.shape[axis] - 1)
        result = torch.cat([torch.ones_like(first), before], axis)
    return ((torch.flip(result, (axis,)) if attrs.get("reverse") else result).to(x.dtype),)


def_torch_operator("CumProd", _running_product_of_tensors, ("x",))
