"""Primitive: an operator object with its attributes set, called with tensors (`ops.ReduceSum()(x, 1)`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from msdump.frontends.mindspore.dispatch import as_tensor, execute
from msdump.frontends.mindspore.names import publish
from msdump.frontends.mindspore.tracer import MARK, current_tracer

_Function = TypeVar("_Function", bound=Callable[..., Any])

# Classes that `operator_class` made, by their names in `mindspore.ops.operations`.
functional_classes: dict[str, type[Primitive]] = {}


class Primitive:
    """Interface of operator objects. `name` is the op type, `attrs` what the constructor was given.

    Subclasses write `compute`; a call is `compute` under the operator's own mark, if `set_dump` gave it one.
    """

    def __init__(self, name: str = "", **attrs: Any) -> None:
        self.name = name or type(self).__name__
        self.attrs: dict[str, Any] = attrs

    def add_prim_attr(self, name: str, value: Any) -> Primitive:
        """Set an attribute."""
        self.attrs[name] = value
        return self

    def set_device(self, device_target: str) -> Primitive:
        """Accepted: there is one device."""
        return self

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        mark, tracer = self.attrs.get(MARK), current_tracer()
        if mark is None or tracer is None:
            return self.compute(*inputs, **kwargs)
        with tracer.marking(mark == "true"):
            return self.compute(*inputs, **kwargs)

    def compute(self, *inputs: Any) -> Any:
        """The operator on these operands; subclasses write it where operands and attributes differ."""
        outputs = execute(self.name, [as_tensor(item) for item in inputs], self.attrs)
        return outputs[0] if len(outputs) == 1 else outputs

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value}" for name, value in self.attrs.items())
        return f"Prim[{self.name}]<{inside}>"


PrimitiveWithInfer = PrimitiveWithCheck = Primitive


def operator_class(*names: str) -> Callable[[_Function], _Function]:
    """Decorator: gives a function of `mindspore.ops` an operator class without attributes, whose call it is.

    names    what `mindspore.ops.operations` calls the class; the first is the operator's type
    """

    def declare(function: _Function) -> _Function:
        class Functional(Primitive):
            def __init__(self) -> None:
                super().__init__(names[0])

            def compute(self, *inputs: Any, **kwargs: Any) -> Any:
                return function(*inputs, **kwargs)

        Functional.__name__ = Functional.__qualname__ = names[0]
        Functional.__doc__ = function.__doc__ or f"`ops.{function.__name__}` as an operator object."
        functional_classes.update(dict.fromkeys(names, Functional))
        return function

    return declare


publish(__name__)
