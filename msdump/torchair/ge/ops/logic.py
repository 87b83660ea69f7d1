"""Comparison, logic and choice."""

from __future__ import annotations

import operator
from collections.abc import Callable

import torch

from msdump.torchair.ge.builder import Builder
from msdump.torchair.ge.graph import GeTensor, Operand
from msdump.torchair.ge.ops.elementwise import common_dtype
from msdump.torchair.ge.registry import converter, kernel
from msdump.torchair.ge.rows import row

_COMPARISONS: dict[str, tuple[str, Callable[..., object]]] = {
    "eq": ("Equal", operator.eq),
    "ne": ("NotEqual", operator.ne),
    "lt": ("Less", operator.lt),
    "le": ("LessEqual", operator.le),
    "gt": ("Greater", operator.gt),
    "ge": ("GreaterEqual", operator.ge),
}
# Of integers, of truth values.
_BITWISE = {
    "and": ("BitwiseAnd", "LogicalAnd"),
    "or": ("BitwiseOr", "LogicalOr"),
    "xor": ("BitwiseXor", "LogicalXor"),
}
_LOGIC: dict[str, Callable[..., object]] = {
    "LogicalAnd": torch.logical_and,
    "LogicalOr": torch.logical_or,
    "LogicalNot": torch.logical_not,
    "LogicalXor": torch.logical_xor,
    "BitwiseAnd": torch.bitwise_and,
    "BitwiseOr": torch.bitwise_or,
    "BitwiseXor": torch.bitwise_xor,
    "Invert": torch.bitwise_not,
    "LeftShift": torch.bitwise_left_shift,
    "RightShift": torch.bitwise_right_shift,
}

for _type, _function in _LOGIC.items():
    kernel(_type)(_function)


def _comparison(aten: str, op_type: str) -> None:
    @converter(f"aten.{aten}.Tensor", f"aten.{aten}.Scalar")
    def convert(ge: Builder, x: GeTensor, other: Operand) -> GeTensor:
        x1, x2 = ge.promoted(x, other, dtype=common_dtype(x, other))
        return ge.op(op_type, {"x1": x1, "x2": x2})


def _bitwise(aten: str, of_integers: str, of_bools: str) -> None:
    @converter(f"aten.bitwise_{aten}.Tensor", f"aten.bitwise_{aten}.Scalar", f"aten.bitwise_{aten}.Scalar_Tensor")
    def convert(ge: Builder, x: Operand, other: Operand) -> GeTensor:
        dtype = ge.result.dtype
        x1, x2 = ge.promoted(x, other, dtype=dtype)
        return ge.op(of_bools if dtype == torch.bool else of_integers, {"x1": x1, "x2": x2})


def _logical(aten: str, op_type: str) -> None:
    @converter(f"aten.logical_{aten}.default")
    def convert(ge: Builder, x: GeTensor, other: GeTensor) -> GeTensor:
        x1, x2 = ge.promoted(x, other, dtype=torch.bool)
        return ge.op(op_type, {"x1": x1, "x2": x2})


def _shift(aten: str, op_type: str) -> None:
    @converter(
        *(f"aten.bitwise_{aten}_shift.{overload}" for overload in ("Tensor", "Tensor_Scalar", "Scalar_Tensor")),
        *(f"aten.__{aten[0]}shift__.{overload}" for overload in ("Tensor", "Scalar")),
    )
    def convert(ge: Builder, x: Operand, other: Operand) -> GeTensor:
        x1, x2 = ge.promoted(x, other, dtype=ge.result.dtype)
        return ge.op(op_type, {"x1": x1, "x2": x2})


for _aten, (_type, _function) in _COMPARISONS.items():
    _comparison(_aten, _type)
    kernel(_type, numbers=("x1", "x2"))(_function)
for _aten, (_integers, _bools) in _BITWISE.items():
    _bitwise(_aten, _integers, _bools)
    _logical(_aten, _bools)
_shift("left", "LeftShift")
_shift("right", "RightShift")


@converter("aten.logical_not.default")
def logical_not(ge: Builder, x: GeTensor) -> GeTensor:
    return ge.op("LogicalNot", {"x": ge.cast(x, torch.bool)})


@converter("aten.bitwise_not.default")
def bitwise_not(ge: Builder, x: GeTensor) -> GeTensor:
    return ge.op("LogicalNot" if x.dtype == torch.bool else "Invert", {"x": x})


row("aten.isnan.default", "IsNan", "x")
row("aten.isinf.default", "IsInf", "x")
row("aten.isfinite.default", "IsFinite", "x")


@converter("aten.where.self", "aten.where.ScalarOther", "aten.where.ScalarSelf", "aten.where.Scalar")
def where(ge: Builder, condition: GeTensor, x: Operand, other: Operand) -> GeTensor:
    then, otherwise = ge.promoted(x, other, dtype=ge.result.dtype)
    return ge.op("SelectV2", {"condition": condition, "then": then, "else": otherwise}, output="result")


kernel("SelectV2")(torch.where)


@converter("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(ge: Builder, x: GeTensor, mask: GeTensor, value: Operand) -> GeTensor:
    (filler,) = ge.promoted(value, dtype=x.dtype)
    return ge.op("MaskedFill", {"x": x, "mask": mask, "value": filler})


kernel("MaskedFill", numbers=("value",))(torch.masked_fill)
