"""Primitive: an operator object with its attributes set, called with tensors (`ops.ReduceSum()(x, 1)`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msdump.frontends.mindspore.dispatch import execute
from msdump.frontends.mindspore.promotion import as_tensor


class Primitive:
    """Interface of operator objects. `name` is the op type, `attrs` what the constructor was given."""

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

    def __call__(self, *inputs: Any) -> Any:
        outputs = execute(self.name, [as_tensor(item) for item in inputs], self.attrs)
        return outputs[0] if len(outputs) == 1 else outputs

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value}" for name, value in self.attrs.items())
        return f"Prim[{self.name}]<{inside}>"


PrimitiveWithInfer = PrimitiveWithCheck = Primitive


def functional_primitive(name: str, function: Callable[..., Any], doc: str) -> type[Primitive]:
    """Class of an operator without attributes whose call is a function of `mindspore.ops`."""

    class Functional(Primitive):
        def __init__(self) -> None:
            super().__init__(name)

        def __call__(self, *inputs: Any) -> Any:
            return function(*inputs)

    Functional.__name__ = Functional.__qualname__ = name
    Functional.__doc__ = doc
    return Functional
