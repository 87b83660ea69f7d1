"""Elementwise operators: one element of each operand makes one element of the result.

Operands have one dtype, which is the result's (bool for comparisons); shapes broadcast. Integer division follows
MindSpore's CPU kernels: Div and RealDiv truncate toward zero, FloorDiv rounds down, and by zero 0 gives 0 and
anything else the largest or smallest value of its dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msdump.graph.graph import CONSTANT, Node, Value
from msdump.graph.primitive import Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.checks import (
    BOOLS,
    FLOATS,
    NUMBERS,
    broadcast_shapes,
    expect,
    expect_count,
    expect_dtype,
    expect_same_dtype,
)
from msdump.mindspore.kernels.erf import erf
from msdump.mindspore.kernels.threads import BLOCK, apply_ufunc, run_blocks
from msdump.mindspore.kernels.torch_operator import torch_operator
from msdump.mindspore.program.autodiff import GradBuilder, Grads, def_bprop, no_gradient, one_operator, outer_gradient
from msdump.tensors.arrays import Array

# -- arithmetic ---------------------------------------------------------------------------------------


def _broadcast(
    types: Sequence[TensorType], names: Sequence[str], dtypes: frozenset[str], result: str | None = None
) -> tuple[TensorType, ...]:
    """Type of the result of operands of one dtype among `dtypes`, whose shapes broadcast."""
    expect_count(types, len(names))
    expect_dtype(types[0], dtypes, names[0])
    expect_same_dtype(types)
    return (TensorType(result or types[0].dtype, broadcast_shapes([type.shape for type in types])),)


def _define(op_type: str, names: Sequence[str], dtypes: frozenset[str], ufunc: Any, result: str | None = None) -> None:
    """Register a broadcasting operator: shape rule and, unless `ufunc` is None, the kernel."""
    def_primitive(op_type, names)

    @def_infer(op_type)
    def infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
        return _broadcast(types, names, dtypes, result)

    if ufunc is not None:

        @def_kernel(op_type)
        def kernel(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
            apply_ufunc(ufunc, inputs, out[0])


_BINARY: tuple[tuple[str, frozenset[str], Any], ...] = (
    ("Add", NUMBERS, np.add),
    ("Sub", NUMBERS, np.subtract),
    ("Mul", NUMBERS, np.multiply),
    ("Div", NUMBERS, None),
    ("RealDiv", NUMBERS, None),
    ("FloorDiv", NUMBERS, None),
    ("Mod", NUMBERS, np.fmod),
    ("FloorMod", NUMBERS, np.remainder),
    ("Pow", NUMBERS, None),
    ("Maximum", NUMBERS | BOOLS, np.maximum),
    ("Minimum", NUMBERS | BOOLS, np.minimum),
    ("LogicalAnd", BOOLS, np.logical_and),
    ("LogicalOr", BOOLS, np.logical_or),
)
for _name, _dtypes, _ufunc in _BINARY:
    _define(_name, ("x", "y"), _dtypes, _ufunc)

_COMPARISONS: tuple[tuple[str, frozenset[str], Any], ...] = (
    ("Equal", NUMBERS | BOOLS, np.equal),
    ("NotEqual", NUMBERS | BOOLS, np.not_equal),
    ("Greater", NUMBERS | BOOLS, np.greater),
    ("GreaterEqual", NUMBERS | BOOLS, np.greater_equal),
    ("Less", NUMBERS | BOOLS, np.less),
    ("LessEqual", NUMBERS | BOOLS, np.less_equal),
)
for _name, _dtypes, _ufunc in _COMPARISONS:
    _define(_name, ("x", "y"), _dtypes, _ufunc, "bool")

_UNARY: tuple[tuple[str, frozenset[str], Any, str | None], ...] = (
    ("Neg", NUMBERS, np.negative, None),
    ("Abs", NUMBERS | BOOLS, np.absolute, None),
    ("Square", NUMBERS, np.square, None),
    ("Sign", NUMBERS, np.sign, None),
    ("Round", NUMBERS, np.rint, None),
    ("Floor", FLOATS, np.floor, None),
    ("Ceil", FLOATS, np.ceil, None),
    ("Exp", FLOATS, np.exp, None),
    ("Log", FLOATS, np.log, None),
    ("Sqrt", FLOATS, np.sqrt, None),
    ("Rsqrt", FLOATS, None, None),
    ("Reciprocal", FLOATS, np.reciprocal, None),
    ("Sin", FLOATS, np.sin, None),
    ("Cos", FLOATS, np.cos, None),
    ("Erf", FLOATS, None, None),
    ("LogicalNot", BOOLS, np.logical_not, None),
    ("IsNan", FLOATS, np.isnan, "bool"),
    ("IsInf", FLOATS, np.isinf, "bool"),
    ("IsFinite", FLOATS, np.isfinite, "bool"),
)
for _name, _dtypes, _ufunc, _result in _UNARY:
    _define(_name, ("x",), _dtypes, None if _name == "Round" else _ufunc, _result)


@def_kernel("Round")
def _round(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Half to even; integers stay."""
    if inputs[0].dtype.kind in "iu":
        np.copyto(out[0], inputs[0])
    else:
        apply_ufunc(np.rint, inputs, out[0])


@def_kernel("Rsqrt")
def _rsqrt(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """1 / sqrt(x), through float32 for the two-byte floats so that it is rounded once."""
    x, y = inputs[0], out[0]
    with np.errstate(all="ignore"):
        if y.dtype.itemsize == 2:
            np.copyto(y, np.reciprocal(np.sqrt(x.astype(np.float32))), casting="unsafe")
            return
    apply_ufunc(np.sqrt, [x], y)
    apply_ufunc(np.reciprocal, [y], y)


@def_kernel("Erf")
def _erf(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    x, y = inputs[0].reshape(-1), out[0].reshape(-1)

    def block(start: int, stop: int) -> None:
        y[start:stop] = erf(x[start:stop]).astype(y.dtype)

    run_blocks(y.size, block, BLOCK)


def _divided_by_zero(x: Array, y: Array, out: Array) -> None:
    """What integers give where `y` is zero: 0, or the end of the range on the side of `x`."""
    is_zero = np.equal(y, 0)
    if not is_zero.any():
        return
    limits = np.iinfo(out.dtype)
    np.copyto(out, np.zeros((), out.dtype), where=is_zero)
    np.copyto(out, np.asarray(limits.max, out.dtype), where=is_zero & (x > 0))
    np.copyto(out, np.asarray(limits.min, out.dtype), where=is_zero & (x < 0))


def _divide(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    (x, y), quotient = inputs, out[0]
    if quotient.dtype.kind not in "iu":
        apply_ufunc(np.true_divide, inputs, quotient)
        return
    with np.errstate(all="ignore"):
        np.floor_divide(x, y, out=quotient)
        # From rounding down to truncation: one up where the quotient is negative and not whole.
        if quotient.dtype.kind == "i":
            np.add(quotient, 1, out=quotient, where=((x < 0) != (y < 0)) & (np.remainder(x, y) != 0))
    _divided_by_zero(x, y, quotient)


def_kernel("Div")(_divide)
def_kernel("RealDiv")(_divide)


@def_kernel("FloorDiv")
def _floor_divide(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Edges: a float divided by zero gives what the exact quotient gives, +-Inf or NaN."""
    (x, y), quotient = inputs, out[0]
    if quotient.dtype.kind in "iu":
        with np.errstate(all="ignore"):
            np.floor_divide(x, y, out=quotient)
        _divided_by_zero(x, y, quotient)
        return
    apply_ufunc(np.true_divide, inputs, quotient)
    apply_ufunc(np.floor, [quotient], quotient)


@def_kernel("Pow")
def _pow(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """x ** y.   Edges: a negative integer exponent truncates toward zero, so only bases 1 and -1 survive it."""
    (x, y), power = inputs, out[0]
    if power.dtype.kind == "i" and bool((y < 0).any()):
        negative = y < 0
        np.power(x, np.where(negative, 0, y).astype(y.dtype), out=power)
        odd = np.where(np.remainder(y, 2) == 1, -1, 1)
        whole = np.where(x == 1, 1, np.where(x == -1, odd, 0)).astype(power.dtype)
        np.copyto(power, whole, where=negative)
        return
    apply_ufunc(np.power, inputs, power)


# -- gradients of arithmetic --------------------------------------------------------------------------


def _reduced(builder: GradBuilder, node: Node, grads: Sequence[Callable[[], Value]]) -> Grads:
    """Each wanted gradient, made only then, summed to its operand's shape."""
    return [
        builder.reduce_to(make(), value.type.shape) if want else None
        for make, value, want in zip(grads, node.inputs, builder.wanted, strict=True)
    ]


@def_bprop("Add")
def _add_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    d = outer_gradient(outer)
    return _reduced(builder, node, [lambda: d, lambda: d])


@def_bprop("Sub")
def _sub_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    d = outer_gradient(outer)
    return _reduced(builder, node, [lambda: d, lambda: builder.add("Neg", [d])])


@def_bprop("Mul")
def _mul_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    d, (x, y) = outer_gradient(outer), node.inputs
    return _reduced(builder, node, [lambda: builder.add("Mul", [d, y]), lambda: builder.add("Mul", [d, x])])


def _div_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    """d / y and -d * (x / y / y), as MindSpore."""
    d, y, op = outer_gradient(outer), node.inputs[1], node.op_type

    def of_y() -> Value:
        return builder.add("Mul", [builder.add("Neg", [d]), builder.add(op, [node.outputs[0], y])])

    return _reduced(builder, node, [lambda: builder.add(op, [d, y]), of_y])


def_bprop("Div")(_div_grad)
def_bprop("RealDiv")(_div_grad)


def _mod_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    """x mod y = x - y*q with a whole q, constant almost everywhere."""
    d, (x, y) = outer_gradient(outer), node.inputs

    def of_y() -> Value:
        whole = builder.add("RealDiv", [builder.add("Sub", [x, node.outputs[0]]), y])
        return builder.add("Neg", [builder.add("Mul", [d, whole])])

    return _reduced(builder, node, [lambda: d, of_y])


def_bprop("Mod")(_mod_grad)
def_bprop("FloorMod")(_mod_grad)


@def_bprop("Pow")
def _pow_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    """Edges: the exponent's gradient is 0 where the base is not positive, so no NaN comes from log."""
    d, (x, y) = outer_gradient(outer), node.inputs
    one = builder.constant(1, x.type.dtype)

    def of_x() -> Value:
        exponent = y.constant if y.kind == CONSTANT else None
        less = builder.add("Sub", [y, one]) if exponent is None else builder.constant(exponent - 1, y.type.dtype)
        lower = builder.add("Pow", [x, less])
        return builder.add("Mul", [d, builder.add("Mul", [y, lower])])

    def of_y() -> Value:
        is_positive = builder.add("Greater", [x, builder.constant(0, x.type.dtype)])
        log = builder.add("Log", [builder.add("Select", [is_positive, x, one])])
        return builder.add("Mul", [d, builder.add("Mul", [node.outputs[0], log])])

    return _reduced(builder, node, [of_x, of_y])


for _name in ("FloorDiv", "Sign", "Round", "Floor", "Ceil", "IsNan", "IsInf", "IsFinite"):
    def_bprop(_name)(no_gradient)
for _name in ("LogicalAnd", "LogicalOr", "LogicalNot", *(row[0] for row in _COMPARISONS)):
    def_bprop(_name)(no_gradient)


def_bprop("Neg")(one_operator("Neg"))


@def_bprop("Abs")
def _abs_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    return [builder.add("Mul", [outer_gradient(outer), builder.add("Sign", [node.inputs[0]])])]


@def_bprop("Square")
def _square_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    x = node.inputs[0]
    twice = builder.add("Mul", [x, builder.constant(2, x.type.dtype)])
    return [builder.add("Mul", [outer_gradient(outer), twice])]


def_bprop("Exp")(one_operator("Mul", lambda x, y, dy: (y, dy)))
def_bprop("Log")(one_operator("Div", lambda x, y, dy: (dy, x)))


@def_bprop("Sin")
def _sin_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    return [builder.add("Mul", [outer_gradient(outer), builder.add("Cos", [node.inputs[0]])])]


@def_bprop("Cos")
def _cos_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    return [builder.add("Mul", [outer_gradient(outer), builder.add("Neg", [builder.add("Sin", [node.inputs[0]])])])]


@def_bprop("Erf")
def _erf_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    """2/sqrt(pi) * exp(-x*x)."""
    x = node.inputs[0]
    bell = builder.add("Exp", [builder.add("Neg", [builder.add("Square", [x])])])
    factor = builder.constant(2.0 / np.sqrt(np.pi), x.type.dtype)
    return [builder.add("Mul", [outer_gradient(outer), builder.add("Mul", [bell, factor])])]


# -- gradient operators of their own ------------------------------------------------------------------


def _define_grad(op_type: str, formula: Callable[[Any, Any], Any]) -> None:
    """`{op}Grad(y, dy)`, which PyTorch computes, and the gradient of `op` that uses it."""

    def infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
        return _broadcast(types, ("y", "dy"), FLOATS)

    torch_operator(f"{op_type}Grad", "y dy", infer=infer)(lambda torch, y, dy: formula(y, dy))

    def_bprop(op_type)(one_operator(f"{op_type}Grad", lambda x, y, dy: (y, dy)))


_define_grad("Sqrt", lambda y, dy: dy / (2 * y))
_define_grad("Rsqrt", lambda y, dy: y * y * y * -0.5 * dy)
_define_grad("Reciprocal", lambda y, dy: -(y * y * dy))


def _extreme_grad_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    expect_count(types, 3)
    expect_dtype(types[0], FLOATS, "x")
    expect_same_dtype(types)
    shape = broadcast_shapes([types[0].shape, types[1].shape])
    expect(types[2].shape == shape, f"dy of shape {shape}", types[2].shape)
    return (types[0], types[1])


def _define_extreme_grad(op_type: str) -> None:
    """Each element of dy goes to the operand that was chosen; on a tie half to each, beside a NaN all to both.

    Source: MindSpore 2.0 and 2.7 halve it on a tie.
    """

    @torch_operator(f"{op_type}Grad", "x y dy", "dx dy", infer=_extreme_grad_infer)
    def gradient(torch: Any, x: Any, y: Any, dy: Any) -> Any:
        is_x_less, is_y_less = (x < y, y < x) if op_type == "Maximum" else (x > y, y > x)
        share = torch.where(x == y, dy * 0.5, dy)
        parts = [torch.where(is_less, 0.0, share) for is_less in (is_x_less, is_y_less)]
        return [part.sum_to_size(operand.shape) for part, operand in zip(parts, (x, y), strict=True)]

    @def_bprop(op_type)
    def bprop(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
        return list(builder.add_all(f"{op_type}Grad", [*node.inputs, outer_gradient(outer)]))


_define_extreme_grad("Maximum")
_define_extreme_grad("Minimum")


# -- choice and sums ----------------------------------------------------------------------------------

def_primitive("Select", ("condition", "x", "y"))


@def_infer("Select")
def _select_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    expect_count(types, 3)
    expect_dtype(types[0], BOOLS, "condition")
    expect_same_dtype(types[1:])
    return (TensorType(types[1].dtype, broadcast_shapes([type.shape for type in types])),)


@def_kernel("Select")
def _select(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    condition, x, y = inputs
    np.copyto(out[0], y)
    np.copyto(out[0], x, where=condition)


@def_bprop("Select")
def _select_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    d, condition = outer_gradient(outer), node.inputs[0]
    zero = builder.add("ZerosLike", [d])
    x, y = (value.type.shape for value in node.inputs[1:])
    of_x = builder.reduce_to(builder.add("Select", [condition, d, zero]), x) if builder.wanted[1] else None
    of_y = builder.reduce_to(builder.add("Select", [condition, zero, d]), y) if builder.wanted[2] else None
    return [None, of_x, of_y]


def_primitive("MaskedFill", ("x", "mask", "value"))


@def_infer("MaskedFill")
def _masked_fill_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """x and mask broadcast; value has no axes."""
    expect_count(types, 3)
    x, mask, value = types
    expect_dtype(mask, BOOLS, "mask")
    expect_same_dtype((x, value))
    expect(value.shape == (), "value of shape ()", value.shape)
    return (TensorType(x.dtype, broadcast_shapes([x.shape, mask.shape])),)


@def_kernel("MaskedFill")
def _masked_fill(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    x, mask, value = inputs
    np.copyto(out[0], x)
    np.copyto(out[0], value, where=mask)


@def_bprop("MaskedFill")
def _masked_fill_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    """Source: MindSpore: products with the mask as numbers, so that an infinite gradient makes NaN where it is 0."""
    d, (x, mask, value) = outer_gradient(outer), node.inputs
    is_filled = builder.add("Cast", [mask], {"dtype": d.type.dtype})
    of_x = of_value = None
    if builder.wanted[0]:
        is_kept = builder.add("Sub", [builder.constant(1, d.type.dtype), is_filled])
        of_x = builder.reduce_to(builder.add("Mul", [d, is_kept]), x.type.shape)
    if builder.wanted[2]:
        of_value = builder.reduce_to(builder.add("Mul", [d, is_filled]), value.type.shape)
    return [of_x, None, of_value]


def_primitive("AddN", ("x",))


@def_infer("AddN")
def _add_n_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    expect(len(types) >= 1, "at least one operand", 0)
    expect_dtype(types[0], NUMBERS, "x")
    for type in types[1:]:
        expect(type == types[0], f"operands of type {types[0]}", type)
    return (types[0],)


@def_kernel("AddN")
def _add_n(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Sum from left to right."""
    if len(inputs) == 1:
        np.copyto(out[0], inputs[0])
        return
    apply_ufunc(np.add, inputs[:2], out[0])
    for array in inputs[2:]:
        apply_ufunc(np.add, [out[0], array], out[0])


@def_bprop("AddN")
def _add_n_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    return [outer_gradient(outer)] * len(node.inputs)
