"""Functions that order or watch a program, and write parameters."""

from __future__ import annotations

from typing import Any

from msdump.frontends.mindspore.common.parameter import Parameter
from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.dispatch import as_tensor, call
from msdump.frontends.mindspore.dispatch import cast as _cast
from msdump.frontends.mindspore.names import publish
from msdump.frontends.mindspore.ops.primitive import operator_class


@operator_class("StopGradient")
def stop_gradient(value: Tensor) -> Tensor:
    """The same value, through which no gradient flows."""
    return call("StopGradient", value)


@operator_class("Depend")
def depend(value: Any, expr: Any) -> Any:
    """`value`, after `expr` was computed; costs no kernel."""
    return call("Depend", value, expr) if isinstance(value, Tensor) and isinstance(expr, Tensor) else value


@operator_class("Assign")
def assign(variable: Parameter, value: Any) -> Tensor:
    """Write `value` to a parameter."""
    return call("Assign", variable, _cast(as_tensor(value, variable.type_.dtype), variable.type_.dtype))


@operator_class("AssignAdd")
def assign_add(variable: Parameter, value: Any) -> Tensor:
    """Add `value` to a parameter in place."""
    return call("AssignAdd", variable, _cast(as_tensor(value, variable.type_.dtype), variable.type_.dtype))


@operator_class("AssignSub")
def assign_sub(variable: Parameter, value: Any) -> Tensor:
    """Subtract `value` from a parameter in place."""
    return call("AssignSub", variable, _cast(as_tensor(value, variable.type_.dtype), variable.type_.dtype))


@operator_class("Print")
def print_(*input_x: Any) -> Tensor:
    """Print tensors and strings when the operator runs."""
    tensors = [item for item in input_x if isinstance(item, Tensor)]
    strings = tuple(None if isinstance(item, Tensor) else str(item) for item in input_x)
    return call("Print", *tensors, strings=strings)


publish(__name__)
