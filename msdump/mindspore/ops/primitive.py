"""Primitive: an operator object with its attributes set, called with tensors (`ops.ReduceSum()(x, 1)`)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

from msdump.mindspore.common.signatures import bound_arguments as bound_arguments
from msdump.mindspore.dispatch import as_tensor, execute
from msdump.mindspore.located import tell
from msdump.mindspore.names import explain_missing, publish
from msdump.mindspore.sharding import shard
from msdump.mindspore.tracer import MARK, current_tracer

_Function = TypeVar("_Function", bound=Callable[..., Any])

# Classes that `operator_class` made, by their names in `mindspore.ops.operations`.
functional_classes: dict[str, type[Primitive]] = {}


class Primitive:
    """Interface of operator objects. `name` is the op type, `attrs` what the constructor was given.

    Subclasses write `compute`; a call is `compute` under the operator's own mark, if `set_dump` gave it one.
    """

    _op_type: ClassVar[str] = ""

    def __init_subclass__(cls, name: str = "", **attributes: Any) -> None:
        """`class Softmax(Primitive, axis=-1)`: what the constructor takes and keeps.

        name         the operator's type, where it is not the name of the class
        attributes   with their defaults; ... for none
        """
        super().__init_subclass__()
        if name:
            cls.__name__ = cls.__qualname__ = cls._op_type = name
        if "__init__" in vars(cls) or not (name or attributes):
            return
        made = signature_of(attributes)

        def __init__(self: Primitive, *args: Any, **kwargs: Any) -> None:
            Primitive.__init__(self, **bound_arguments(type(self).__name__, made, args, kwargs))

        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        shown: Any = __init__
        shown.__signature__ = inspect.Signature([own, *made.parameters.values()])
        cls.__init__ = __init__  # type: ignore[method-assign]

    def __init__(self, name: str = "", **attrs: Any) -> None:
        self.name = name or self._op_type or type(self).__name__
        self.attrs: dict[str, Any] = attrs

    def add_prim_attr(self, name: str, value: Any) -> Primitive:
        """Set an attribute."""
        self.attrs[name] = value
        return self

    def set_device(self, device_target: str) -> Primitive:
        """Accepted: there is one device."""
        return self

    def shard(self, in_strategy: Any = None, out_strategy: Any = None) -> Primitive:
        """This operator, when the strategies cut nothing.   Raises: ValueError for one that cuts."""
        shard(self, in_strategy, out_strategy)
        return self

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        mark, tracer = self.attrs.get(MARK), current_tracer()
        try:
            if mark is None or tracer is None:
                return self.compute(*inputs, **kwargs)
            with tracer.marking(mark == "true"):
                return self.compute(*inputs, **kwargs)
        except Exception as error:
            tell(error, self.name, inputs, kwargs)
            raise

    def compute(self, *inputs: Any) -> Any:
        """The operator on these operands; subclasses write it where operands and attributes differ."""
        outputs = execute(self.name, [as_tensor(item) for item in inputs], self.attrs)
        return outputs[0] if len(outputs) == 1 else outputs

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value}" for name, value in self.attrs.items())
        return f"Prim[{self.name}]<{inside}>"


PrimitiveWithInfer = PrimitiveWithCheck = Primitive


def signature_of(attributes: Mapping[str, Any]) -> inspect.Signature:
    """Parameters with their defaults; ... for none, those come first."""
    kind, none = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
    listed = [
        inspect.Parameter(each, kind, default=none if value is ... else value) for each, value in attributes.items()
    ]
    return inspect.Signature(sorted(listed, key=lambda each: each.default is not none))


def operator_class(*names: str) -> Callable[[_Function], _Function]:
    """Decorator: gives a function of `mindspore.ops` an operator class without attributes, whose call it is.

    names    what `mindspore.ops.operations` calls the class; the first is the operator's type
    """

    def declare(function: _Function) -> _Function:
        class Functional(Primitive, name=names[0]):
            def compute(self, *inputs: Any, **kwargs: Any) -> Any:
                return function(*inputs, **kwargs)

        Functional.__doc__ = function.__doc__ or f"`ops.{function.__name__}` as an operator object."
        functional_classes.update(dict.fromkeys(names, Functional))
        return function

    return declare


publish(__name__)

__getattr__ = explain_missing(__name__)
