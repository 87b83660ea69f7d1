"""What GE operators compute from sizes: Python ints, and lists of them. `Shape` is where they come from."""

from __future__ import annotations

import math
import operator
from typing import Any

import torch

from msdump.frontends.torchair.ge.dtypes import dtype_of_number
from msdump.frontends.torchair.ge.registry import kernel, size_kernel

_KERNELS = {
    "Neg": operator.neg,
    "Abs": abs,
    "Floor": math.floor,
    "Ceil": math.ceil,
    "Trunc": math.trunc,
    "Round": round,
    "LogicalNot": torch.sym_not,
    "LogicalAnd": operator.and_,
    "LogicalOr": operator.or_,
    "Maximum": torch.sym_max,
    "Minimum": torch.sym_min,
    "Sqrt": torch._sym_sqrt,  # type: ignore[attr-defined]
    "SelectV2": torch.sym_ite,
    "Gather": operator.getitem,
    "Mod": operator.mod,
}

for _type, _function in _KERNELS.items():
    size_kernel(_type)(_function)


@kernel("Shape")
def shape(x: Any) -> list[Any]:
    return list(x.shape)


@size_kernel("ReduceProd")
def product(x: list[Any], axes: list[int], *, keep_dims: bool) -> Any:
    return math.prod(x)


@size_kernel("AddN")
def total(*items: Any, N: int) -> Any:
    return sum(items)


@size_kernel("Cast")
def cast(x: Any, *, dst_type: int) -> Any:
    if isinstance(x, list):
        return [cast(item, dst_type=dst_type) for item in x]
    to_number: Any = torch.sym_float if dtype_of_number(dst_type).is_floating_point else torch.sym_int
    return to_number(x)
