"""Operator classes that update weights. Numbers of a call become tensors, so that every run reads them anew."""

from __future__ import annotations

import inspect
from typing import Any

from msdump.graph.primitive import definition_of
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import as_tensor, execute
from msdump.mindspore.ops.declaration import plain
from msdump.mindspore.ops.primitive import Primitive, bound_arguments, functional_classes, signature_of
from msdump.mindspore.tracer import current_tracer

_LOCKED = {"use_locking": False}
_SLOTS = {"update_slots": True}
_RMS = ("rho", "momentum", "epsilon")

# What the constructor takes, with its defaults; ... for none.
_ATTRIBUTES: dict[str, dict[str, Any]] = {
    "Adam": {**_LOCKED, "use_nesterov": False},
    "AdamNoUpdateParam": {**_LOCKED, "use_nesterov": False},
    "AdamWeightDecay": _LOCKED,
    "ApplyAdaMax": {},
    "ApplyAdadelta": {},
    "ApplyAdagrad": _SLOTS,
    "ApplyAdagradV2": {"epsilon": ..., **_SLOTS},
    "ApplyAdamWithAmsgrad": {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, **_LOCKED},
    "ApplyAdamWithAmsgradV2": _LOCKED,
    "ApplyFtrl": _LOCKED,
    "ApplyRMSProp": _LOCKED,
    "ApplyCenteredRMSProp": _LOCKED,
    "SGD": {"dampening": 0.0, "weight_decay": 0.0, "nesterov": False},
}
# Inputs of the call that are attributes of the operator, behind its operands.
_CALLED = {"ApplyRMSProp": _RMS, "ApplyCenteredRMSProp": _RMS}


def _class_of(op_type: str, attributes: dict[str, Any]) -> type[Primitive]:
    made = signature_of(attributes)
    definition, further = definition_of(op_type), _CALLED.get(op_type, ())
    called = signature_of(dict.fromkeys((*definition.input_names, *further), ...))

    class Update(Primitive, name=op_type):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            bound = bound_arguments(op_type, made, args, kwargs)
            super().__init__(**{name: plain(value, name) for name, value in bound.items()})

        def compute(self, *inputs: Any, **kwargs: Any) -> Any:
            given = bound_arguments(op_type, called, inputs, kwargs)
            attrs = {**self.attrs, **{name: plain(given.pop(name), name) for name in further}}
            tensors = [_operand(value) for value in given.values()]
            _check_states(op_type, definition.input_names, tensors, definition.mutates)
            results = execute(op_type, tensors, attrs)
            return results[0] if len(results) == 1 else results

    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    Update.__init__.__signature__ = inspect.Signature([own, *made.parameters.values()])  # type: ignore[attr-defined]
    Update.__doc__ = f"Operator on {', '.join(definition.input_names)}."
    return Update


def _operand(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else as_tensor(value, "float32")


def _check_states(op_type: str, names: tuple[str, ...], tensors: list[Tensor], slots: tuple[int, ...]) -> None:
    """Raises: TypeError for a state that a graph cannot write."""
    tracer = current_tracer()
    if tracer is None or tracer.is_recording:
        return
    for slot in slots:
        if not isinstance(tensors[slot], Parameter):
            raise TypeError(f"For '{op_type}', the '{names[slot]}' should be a Parameter in a graph, but got a Tensor.")


functional_classes.update({op_type: _class_of(op_type, attributes) for op_type, attributes in _ATTRIBUTES.items()})
