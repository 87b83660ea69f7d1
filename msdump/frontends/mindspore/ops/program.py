"""Functions that order or watch a program, and write parameters."""

from __future__ import annotations

from typing import Any

from msdump.frontends.mindspore.common.parameter import Parameter
from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.dispatch import call
from msdump.frontends.mindspore.promotion import as_tensor
from msdump.frontends.mindspore.promotion import cast as _cast

__all__ = [
    "assign",
    "assign_add",
    "assign_sub",
    "depend",
    "print_",
    "stop_gradient",
]


def stop_gradient(value: Tensor) -> Tensor:
    """The same value, through which no gradient flows."""
    return call("StopGradient", value)


def depend(value: Any, expr: Any) -> Any:
    """`value`, after `expr` was computed; costs no kernel."""
    return call("Depend", value, expr) if isinstance(value, Tensor) and isinstance(expr, Tensor) else value


def assign(variable: Parameter, value: Any) -> Tensor:
    """Write `value` to a parameter."""
    return call("Assign", variable, _cast(as_tensor(value, variable.type_.dtype), variable.type_.dtype))


def assign_add(variable: Parameter, value: Any) -> Tensor:
    """Add `value` to a parameter in place."""
    return call("AssignAdd", variable, _cast(as_tensor(value, variable.type_.dtype), variable.type_.dtype))


def assign_sub(variable: Parameter, value: Any) -> Tensor:
    """Subtract `value` from a parameter in place."""
    return call("AssignSub", variable, _cast(as_tensor(value, variable.type_.dtype), variable.type_.dtype))


def print_(*input_x: Any) -> Tensor:
    """Print tensors and strings when the operator runs."""
    tensors = [item for item in input_x if isinstance(item, Tensor)]
    strings = tuple(None if isinstance(item, Tensor) else str(item) for item in input_x)
    return call("Print", *tensors, strings=strings)
