"""Functions that order or watch a program, and write parameters."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import as_tensor, call, common_dtype, scalar_dtype
from msdump.mindspore.dispatch import cast as _cast
from msdump.mindspore.names import publish
from msdump.mindspore.ops.primitive import operator_class
from msdump.mindspore.sources import user_line


@operator_class("StopGradient")
def stop_gradient(value: Tensor) -> Tensor:
    """The same value, through which no gradient flows."""
    return call("StopGradient", value)


@operator_class("Depend")
def depend(value: Any, expr: Any) -> Any:
    """`value`, after `expr` was computed; costs no kernel."""
    return call("Depend", value, expr) if isinstance(value, Tensor) and isinstance(expr, Tensor) else value


def _operand(op_type: str, variable: Parameter, value: Any) -> Tensor:
    """`value` in the dtype of the parameter that it is written to."""
    tensor = as_tensor(value)
    ours, theirs = variable.type_.dtype, tensor.type_.dtype
    wider = scalar_dtype(ours, value) if isinstance(value, bool | int | float) else common_dtype(ours, theirs)
    if wider != ours:
        raise TypeError(
            f"{op_type}{_here()}: expected a value that {ours}, the dtype of the parameter, can hold, got {theirs}. "
            "A parameter keeps its dtype: cast the value."
        )
    return as_tensor(value, ours) if not isinstance(value, Tensor) else _cast(tensor, ours)


def _here() -> str:
    line = user_line()
    return f" at {line}" if line else ""


@operator_class("Assign")
def assign(variable: Parameter, value: Any) -> Tensor:
    """Write `value` to a parameter.

    Raises: TypeError when the parameter's dtype cannot hold that of `value`, ValueError for another shape.
    """
    tensor = _operand("Assign", variable, value)
    if tensor.shape != variable.shape:
        raise ValueError(
            f"Assign{_here()}: expected 'value' of the same shape as 'variable', {variable.shape}, got {tensor.shape}."
        )
    return call("Assign", variable, tensor)


@operator_class("AssignAdd")
def assign_add(variable: Parameter, value: Any) -> Tensor:
    """Add `value` to a parameter in place."""
    return call("AssignAdd", variable, _operand("AssignAdd", variable, value))


@operator_class("AssignSub")
def assign_sub(variable: Parameter, value: Any) -> Tensor:
    """Subtract `value` from a parameter in place."""
    return call("AssignSub", variable, _operand("AssignSub", variable, value))


@operator_class("Print")
def print_(*input_x: Any) -> Tensor:
    """Print tensors and strings when the operator runs."""
    tensors = [item for item in input_x if isinstance(item, Tensor)]
    strings = tuple(None if isinstance(item, Tensor) else str(item) for item in input_x)
    return call("Print", *tensors, strings=strings)


publish(__name__)
