"""Primitive: an operator object with its attributes set, called with tensors (`ops.ReduceSum()(x, 1)`)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
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


def class_of(
    op_type: str, function: Callable[..., Any], made: Sequence[str] = (), defaults: Mapping[str, Any] | None = None
) -> type[Primitive]:
    """The operator class of a function: `made` are the parameters that its constructor takes, others the call's.

    defaults    of the constructor, where they are not those of the function
    """
    parameters = inspect.signature(function).parameters
    defaults = {name: parameters[name].default for name in made} | dict(defaults or {})
    attributes = {name: ... if value is inspect.Parameter.empty else value for name, value in defaults.items()}
    called = [name for name in parameters if name not in made]
    takes_all = any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters.values())

    class Functional(Primitive, name=op_type, **attributes):
        def compute(self, *inputs: Any, **kwargs: Any) -> Any:
            if takes_all:
                return function(*inputs, **kwargs)
            if len(inputs) > len(called):
                raise TypeError(f"For '{op_type}', expected {len(called)} inputs, got {len(inputs)}.")
            given = dict(zip(called, inputs, strict=False))
            return function(**given, **kwargs, **{name: self.attrs[name] for name in made})

    Functional.__doc__ = function.__doc__ or f"`ops.{function.__name__}` as an operator object."
    return Functional


def operator_class(*names: str, init: str = "", **defaults: Any) -> Callable[[_Function], _Function]:
    """Decorator: gives a function of `mindspore.ops` an operator class, whose call it is.

    names    what `mindspore.ops.operations` calls the class; the first is the operator's type
    init     names of the parameters that the constructor takes, as text; `defaults`: where it has others
    """

    def declare(function: _Function) -> _Function:
        functional_classes.update(dict.fromkeys(names, class_of(names[0], function, init.split(), defaults)))
        return function

    return declare


def def_class(op_type: str, doc: str, compute: Callable[..., Any] | None = None, /, **attributes: Any) -> None:
    """Make an operator class that no function of `mindspore.ops` stands for.

    compute     (operator object, operands...) -> result; None: the operator of this type on them
    attributes  what the constructor takes, with their defaults; ... for none
    """

    class Made(Primitive, name=op_type, **attributes):
        pass

    if compute is not None:
        Made.compute = compute  # type: ignore[method-assign]
    Made.__doc__ = doc
    functional_classes[op_type] = Made


publish(__name__)

__getattr__ = explain_missing(__name__)
