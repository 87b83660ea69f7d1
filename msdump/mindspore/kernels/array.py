"""Shapes, places and dtypes: operators that move elements, or copy them into another dtype, and compute nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from msdump.graph.graph import Node, Value
from msdump.graph.primitive import Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.checks import (
    BOOLS,
    FLOATS,
    NUMBERS,
    attribute,
    broadcast_shapes,
    dtype_attribute,
    expect,
    expect_count,
    expect_dtype,
    int_tuple,
    normal_axis,
    shape_attribute,
)
from msdump.mindspore.kernels.threads import BLOCK, run_blocks
from msdump.mindspore.program.autodiff import GradBuilder, Grads, def_bprop, no_gradient, one_operator, outer_gradient
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.c_order import copy_elements


def copy_view(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Kernel of an output that shows input 0: nothing to do when it is that memory already, else a copy."""
    source, target = inputs[0], out[0]
    if not np.may_share_memory(source, target):
        np.copyto(target, source.reshape(target.shape))


# -- other shapes of the same bytes -------------------------------------------------------------------

_RESHAPES = ("Reshape", "Flatten", "ExpandDims", "Squeeze")
for _name in _RESHAPES:
    def_primitive(_name, ("x",), views={0: 0})
    def_kernel(_name)(copy_view)


@def_infer("Reshape")
def _reshape_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: shape, with at most one -1."""
    expect_count(types, 1)
    shape, x = shape_attribute(attrs), types[0]
    if -1 in shape:
        product = math.prod(size for size in shape if size != -1)
        fits = shape.count(-1) == 1 and product > 0 and x.size % product == 0
        expect(fits, f"a shape for the {x.size} elements of {x}", shape)
        shape = tuple(x.size // product if size == -1 else size for size in shape)
    fits = min(shape, default=0) >= 0 and math.prod(shape) == x.size
    expect(fits, f"a shape for the {x.size} elements of {x}", shape)
    return (TensorType(x.dtype, shape),)


@def_infer("Flatten")
def _flatten_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """(N, ...) -> (N, the rest as one axis).   Edges: (N,) -> (N, 1); () -> (1,)."""
    expect_count(types, 1)
    shape = types[0].shape
    return (TensorType(types[0].dtype, (shape[0], math.prod(shape[1:])) if shape else (1,)),)


@def_infer("ExpandDims")
def _expand_dims_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: axis, where the new axis of size 1 stands in the result."""
    expect_count(types, 1)
    shape = types[0].shape
    axis = normal_axis(attribute(attrs, "axis"), len(shape) + 1)
    return (TensorType(types[0].dtype, (*shape[:axis], 1, *shape[axis:])),)


@def_infer("Squeeze")
def _squeeze_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: axis, () for all axes of size 1."""
    expect_count(types, 1)
    shape = types[0].shape
    given = int_tuple(attrs.get("axis", ()), "axis")
    axes = {normal_axis(axis, len(shape)) for axis in given} if given else {a for a, n in enumerate(shape) if n == 1}
    for axis in sorted(axes):
        expect(shape[axis] == 1, f"axis {axis} of size 1", shape)
    return (TensorType(types[0].dtype, tuple(size for a, size in enumerate(shape) if a not in axes)),)


for _name in _RESHAPES:
    def_bprop(_name)(one_operator("Reshape", attrs=lambda node: {"shape": node.inputs[0].type.shape}))


# -- transpose ----------------------------------------------------------------------------------------

def_primitive("Transpose", ("x",))


def _permutation(attrs: Attrs, ndim: int) -> tuple[int, ...]:
    given = int_tuple(attribute(attrs, "perm"), "perm")
    perm = tuple(normal_axis(axis, ndim, "perm") for axis in given)
    expect(sorted(perm) == list(range(ndim)), f"perm to name each of {ndim} axes once", given)
    return perm


@def_infer("Transpose")
def _transpose_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: perm."""
    expect_count(types, 1)
    perm = _permutation(attrs, types[0].ndim)
    return (TensorType(types[0].dtype, tuple(types[0].shape[axis] for axis in perm)),)


@def_kernel("Transpose")
def _transpose(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    copy_elements(out[0], inputs[0].transpose(attrs["perm"]))


@def_bprop("Transpose")
def _transpose_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    perm = _permutation(node.primitive.attrs, node.inputs[0].type.ndim)
    inverse = tuple(perm.index(axis) for axis in range(len(perm)))
    return [builder.add("Transpose", [outer_gradient(outer)], {"perm": inverse})]


# -- joining and cutting ------------------------------------------------------------------------------

def_primitive("Concat", ("x",))
def_primitive("Stack", ("x",))
def_primitive("Unstack", ("x",))
def_primitive("Split", ("x",))


def _same_dtypes(types: Sequence[TensorType]) -> None:
    expect(len(types) >= 1, "at least one operand", 0)
    for type in types[1:]:
        expect(type.dtype == types[0].dtype, f"operands of dtype {types[0].dtype}", type)


@def_infer("Concat")
def _concat_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: axis (0)."""
    _same_dtypes(types)
    first = types[0].shape
    axis = normal_axis(attrs.get("axis", 0), len(first))
    for type in types:
        fits = type.ndim == len(first) and all(a == axis or n == first[a] for a, n in enumerate(type.shape))
        expect(fits, f"shapes that agree with {first} but for axis {axis}", type.shape)
    total = sum(type.shape[axis] for type in types)
    return (TensorType(types[0].dtype, (*first[:axis], total, *first[axis + 1 :])),)


@def_kernel("Concat")
def _concat(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    np.concatenate(inputs, axis=attrs.get("axis", 0), out=out[0])


@def_bprop("Concat")
def _concat_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    gradient = outer_gradient(outer)
    axis = normal_axis(node.primitive.attrs.get("axis", 0), gradient.type.ndim)
    shapes = {value.type.shape for value in node.inputs}
    if len(shapes) == 1 and len(node.inputs) > 1 and all(builder.wanted) and shapes.pop()[axis]:
        return list(builder.add_all("Split", [gradient], {"axis": axis, "output_num": len(node.inputs)}))
    grads: list[Value | None] = []
    start = 0
    for value, want in zip(node.inputs, builder.wanted, strict=True):
        shape = value.type.shape
        begin = tuple(start if a == axis else 0 for a in range(len(shape)))
        grads.append(builder.add("Slice", [gradient], {"begin": begin, "size": shape}) if want else None)
        start += shape[axis]
    return grads


@def_infer("Stack")
def _stack_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: axis (0), where the new axis stands in the result."""
    _same_dtypes(types)
    first = types[0].shape
    for type in types:
        expect(type.shape == first, f"operands of shape {first}", type.shape)
    axis = normal_axis(attrs.get("axis", 0), len(first) + 1)
    return (TensorType(types[0].dtype, (*first[:axis], len(types), *first[axis:])),)


@def_kernel("Stack")
def _stack(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    target = np.moveaxis(out[0], attrs.get("axis", 0), 0)
    for index, array in enumerate(inputs):
        target[index] = array


@def_bprop("Stack")
def _stack_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    axis = node.primitive.attrs.get("axis", 0)
    return list(builder.add_all("Unstack", [outer_gradient(outer)], {"axis": axis}))


@def_infer("Unstack")
def _unstack_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: axis (0). One output per element of that axis."""
    expect_count(types, 1)
    shape = types[0].shape
    axis = normal_axis(attrs.get("axis", 0), len(shape))
    expect(shape[axis] > 0, f"at least one element along axis {axis}", types[0])
    return (TensorType(types[0].dtype, shape[:axis] + shape[axis + 1 :]),) * shape[axis]


@def_kernel("Unstack")
def _unstack(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    source = np.moveaxis(inputs[0], attrs.get("axis", 0), 0)
    for index, target in enumerate(out):
        target[...] = source[index]


def _present(builder: GradBuilder, node: Node, outer: Grads) -> list[Value]:
    """Output gradients, zeros where an output is not used."""
    return [
        builder.constant(np.zeros(value.type.shape), value.type.dtype) if gradient is None else gradient
        for value, gradient in zip(node.outputs, outer, strict=True)
    ]


@def_bprop("Unstack")
def _unstack_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    axis = node.primitive.attrs.get("axis", 0)
    return [builder.add("Stack", _present(builder, node, outer), {"axis": axis})]


@def_infer("Split")
def _split_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: axis (0), output_num: so many equal parts."""
    expect_count(types, 1)
    shape, parts = types[0].shape, attrs.get("output_num", 1)
    axis = normal_axis(attrs.get("axis", 0), len(shape))
    fits = isinstance(parts, int) and parts > 0 and shape[axis] % parts == 0
    expect(fits, f"output_num to divide the {shape[axis]} elements of axis {axis}", parts)
    part = (*shape[:axis], shape[axis] // parts, *shape[axis + 1 :])
    return tuple(TensorType(types[0].dtype, part) for _ in range(parts))


@def_kernel("Split")
def _split(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    for target, part in zip(out, np.split(inputs[0], len(out), axis=attrs.get("axis", 0)), strict=True):
        np.copyto(target, part)


@def_bprop("Split")
def _split_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    axis = node.primitive.attrs.get("axis", 0)
    return [builder.add("Concat", _present(builder, node, outer), {"axis": axis})]


# -- repeating ----------------------------------------------------------------------------------------

def_primitive("Tile", ("x",))
def_primitive("BroadcastTo", ("x",))


def _tiled(shape: tuple[int, ...], attrs: Attrs) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape with leading ones, and multiples, of equal length."""
    multiples = shape_attribute(attrs, "multiples")
    fits = len(multiples) >= len(shape) and min(multiples, default=1) >= 1
    expect(fits, f"at least {len(shape)} positive multiples", multiples)
    return (1,) * (len(multiples) - len(shape)) + shape, multiples


@def_infer("Tile")
def _tile_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: multiples, at least one per axis."""
    expect_count(types, 1)
    shape, multiples = _tiled(types[0].shape, attrs)
    return (TensorType(types[0].dtype, tuple(n * m for n, m in zip(shape, multiples, strict=True))),)


@def_kernel("Tile")
def _tile(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    shape, multiples = _tiled(inputs[0].shape, attrs)
    pairs = [size for pair in zip(multiples, shape, strict=True) for size in pair]
    once = [size for n in shape for size in (1, n)]
    np.copyto(out[0].reshape(pairs), inputs[0].reshape(once))


@def_bprop("Tile")
def _tile_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    """Sum over the repetitions."""
    original = node.inputs[0].type.shape
    shape, multiples = _tiled(original, node.primitive.attrs)
    pairs = tuple(size for pair in zip(multiples, shape, strict=True) for size in pair)
    split = builder.add("Reshape", [outer_gradient(outer)], {"shape": pairs})
    axes = tuple(range(0, len(pairs), 2))
    total = builder.add("ReduceSum", [split], {"axis": axes, "keep_dims": False}) if axes else split
    return [total if total.type.shape == original else builder.add("Reshape", [total], {"shape": original})]


@def_infer("BroadcastTo")
def _broadcast_to_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: shape; -1 keeps the operand's size."""
    expect_count(types, 1)
    given, have = shape_attribute(attrs), types[0].shape
    lead = len(given) - len(have)
    keeps = all(size >= 0 or (size == -1 and axis >= lead) for axis, size in enumerate(given))
    expect(lead >= 0 and keeps, f"a shape that {have} broadcasts to", given)
    shape = tuple(have[axis - lead] if size == -1 else size for axis, size in enumerate(given))
    expect(broadcast_shapes([have, shape]) == shape, f"a shape that {have} broadcasts to", shape)
    return (TensorType(types[0].dtype, shape),)


@def_kernel("BroadcastTo")
def _broadcast_to(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    np.copyto(out[0], inputs[0])


@def_bprop("BroadcastTo")
def _broadcast_to_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    return [builder.reduce_to(outer_gradient(outer), node.inputs[0].type.shape)]


# -- new tensors --------------------------------------------------------------------------------------

for _name in ("Fill", "Zeros", "Ones"):
    def_primitive(_name, ())
for _name in ("ZerosLike", "OnesLike"):
    def_primitive(_name, ("x",))


@def_infer("Zeros", "Ones")
def _new_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: dtype, shape."""
    expect_count(types, 0)
    shape = shape_attribute(attrs)
    expect(min(shape, default=0) >= 0, "a shape without negative sizes", shape)
    return (TensorType(dtype_attribute(attrs), shape),)


@def_infer("Fill")
def _fill_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: dtype, shape, value (a plain number)."""
    value = attribute(attrs, "value")
    expect(isinstance(value, (bool, int, float)), "value to be a number", repr(value))
    return _new_infer(types, attrs)


@def_infer("ZerosLike", "OnesLike")
def _like_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    expect_count(types, 1)
    return (types[0],)


@def_kernel("Fill")
def _fill(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    with np.errstate(all="ignore"):
        np.copyto(out[0], np.asarray(attrs["value"]), casting="unsafe")


def _zeros(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    out[0][...] = 0


def _ones(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    out[0][...] = 1


def_kernel("Zeros")(_zeros)
def_kernel("ZerosLike")(_zeros)
def_kernel("Ones")(_ones)
def_kernel("OnesLike")(_ones)


def_bprop("ZerosLike")(no_gradient)
def_bprop("OnesLike")(no_gradient)


def_primitive("Cast", ("x",))


@def_infer("Cast")
def _cast_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: dtype."""
    expect_count(types, 1)
    expect_dtype(types[0], NUMBERS | BOOLS, "x")
    result = TensorType(dtype_attribute(attrs), types[0].shape)
    expect_dtype(result, NUMBERS | BOOLS, "attribute dtype as the result")
    return (result,)


@def_kernel("Cast")
def _cast(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Edges: floats truncate toward zero to integers; NaN to bool is True; too large for float16 is Inf."""
    x, y = np.ascontiguousarray(inputs[0]).reshape(-1), out[0].reshape(-1)

    def block(start: int, stop: int) -> None:
        np.copyto(y[start:stop], x[start:stop], casting="unsafe")

    run_blocks(y.size, block, 8 * BLOCK)


@def_bprop("Cast")
def _cast_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    gradient, source = outer[0], node.inputs[0]
    x = source.type.dtype
    # Integers and bools have gradients as well, rounded; none goes on from an operator that has none, such as Greater.
    is_end = x not in FLOATS and source.node is not None and source.node.definition.bprop is None
    if gradient is None or is_end or dtypes.dtype(x).kind == dtypes.COMPLEX:
        return [None]
    return [gradient if gradient.type.dtype == x else builder.add("Cast", [gradient], {"dtype": x})]
