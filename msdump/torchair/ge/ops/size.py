"""Sizes, which a graph with open shapes computes with: Python ints, and lists of them. `Shape` gives them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch

from msdump.torchair.ge.builder import Builder, dtype_of_number, ge_number
from msdump.torchair.ge.graph import GeTensor, Operand, Size
from msdump.torchair.ge.registry import converter, kernel, size_kernel

_BINARY = {
    operator.add: "Add",
    operator.sub: "Sub",
    operator.mul: "Mul",
    operator.floordiv: "FloorDiv",
    operator.truediv: "Div",
    operator.pow: "Pow",
    operator.mod: "Mod",
    operator.eq: "Equal",
    operator.ne: "NotEqual",
    operator.lt: "Less",
    operator.le: "LessEqual",
    operator.gt: "Greater",
    operator.ge: "GreaterEqual",
    operator.and_: "LogicalAnd",
    operator.or_: "LogicalOr",
    torch.sym_max: "Maximum",
    torch.sym_min: "Minimum",
}
_UNARY = {
    operator.neg: "Neg",
    operator.abs: "Abs",
    math.floor: "Floor",
    math.ceil: "Ceil",
    math.trunc: "Trunc",
    round: "Round",
    torch.sym_not: "LogicalNot",
    torch._sym_sqrt: "Sqrt",  # type: ignore[attr-defined]
}


def _binary(op_type: str) -> Callable[[Builder, Operand, Operand], GeTensor]:
    def convert(ge: Builder, x1: Operand, x2: Operand) -> GeTensor:
        return ge.op(op_type, {"x1": x1, "x2": x2})

    return convert


def _unary(op_type: str) -> Callable[[Builder, Operand], GeTensor]:
    def convert(ge: Builder, x: Operand) -> GeTensor:
        return ge.op(op_type, {"x": x})

    return convert


for _function, _type in _BINARY.items():
    converter(_function)(_binary(_type))
for _function, _type in _UNARY.items():
    converter(_function)(_unary(_type))
for _function, _type in (_BINARY | _UNARY | {torch.sym_ite: "SelectV2", operator.getitem: "Gather"}).items():
    size_kernel(_type)(_function)


@converter("aten.sym_size.int", "aten.size.int")
def sym_size(ge: Builder, x: GeTensor, dim: int) -> GeTensor:
    return ge.op("Gather", {"x": ge.op("Shape", {"x": x}), "indices": dim % len(x.shape)})


@kernel("Shape")
def shape_kernel(x: torch.Tensor) -> list[int]:
    return list(x.shape)


@converter("aten.sym_numel.default", "aten.numel.default")
def sym_numel(ge: Builder, x: GeTensor) -> GeTensor:
    axes = list(range(len(x.shape)))
    return ge.op("ReduceProd", {"x": ge.op("Shape", {"x": x}), "axes": axes[:1]}, {"keep_dims": False})


@size_kernel("ReduceProd")
def product_kernel(x: list[int], axes: list[int], *, keep_dims: bool) -> int:
    return math.prod(x)


@converter(torch.sym_float)
def sym_float(ge: Builder, x: Operand) -> GeTensor:
    return ge.op("Cast", {"x": x}, {"dst_type": ge_number(torch.float32)})


@size_kernel("Cast")
def cast_kernel(x: float | list[int], *, dst_type: int) -> Any:
    if isinstance(x, list):
        return [cast_kernel(item, dst_type=dst_type) for item in x]
    to_number: Any = torch.sym_float if dtype_of_number(dst_type).is_floating_point else torch.sym_int
    return to_number(x)


@converter(torch.sym_int)
def sym_int(ge: Builder, x: Operand) -> GeTensor:
    return ge.op("Cast", {"x": x}, {"dst_type": ge_number(torch.int64)})


@converter(torch.sym_ite)
def sym_ite(ge: Builder, condition: Operand, then: Operand, otherwise: Operand) -> GeTensor:
    inputs = {"condition": condition, "then": then, "else": otherwise}
    return ge.op("SelectV2", inputs, output="result")


@converter(*([torch.sym_sum] if hasattr(torch, "sym_sum") else []))  # from PyTorch 2.6 on
def sym_sum(ge: Builder, items: Sequence[Size]) -> GeTensor:
    inputs = {f"x{index}": item for index, item in enumerate(items)}
    return ge.op("AddN", inputs, {"N": len(inputs)})


@size_kernel("AddN")
def total_kernel(*items: int, N: int) -> int:
    return sum(items)


@converter(
    "aten._assert_async.default",
    "aten._assert_async.msg",
    "aten._assert_scalar.default",
    "aten._assert_tensor_metadata.default",
    "aten._functional_assert_async.msg",
    "aten.sym_constrain_range.default",
    "aten.sym_constrain_range_for_size.default",
)
def nothing(ge: Builder, *_: object, **__: object) -> None:
    """Hints for the compiler; a graph computes nothing for them."""
