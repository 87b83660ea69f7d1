"""GE operators of comparison, logic and choice."""

from __future__ import annotations

import operator
from typing import Any

import torch

from msdump.frontends.torchair.ge.registry import kernel

_COMPARISONS: dict[str, Any] = {
    "Equal": operator.eq,
    "NotEqual": operator.ne,
    "Less": operator.lt,
    "LessEqual": operator.le,
    "Greater": operator.gt,
    "GreaterEqual": operator.ge,
}
_LOGIC: dict[str, Any] = {
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
    "IsNan": torch.isnan,
    "IsInf": torch.isinf,
    "IsFinite": torch.isfinite,
}

for _type, _function in _COMPARISONS.items():
    kernel(_type, numbers=("x1", "x2"))(_function)
for _type, _function in _LOGIC.items():
    kernel(_type)(_function)


@kernel("SelectV2")
def select(condition: Any, then: Any, otherwise: Any) -> Any:
    return torch.where(condition, then, otherwise)


@kernel("MaskedFill", numbers=("value",))
def masked_fill(x: Any, mask: Any, value: Any) -> Any:
    return torch.masked_fill(x, mask, value)
