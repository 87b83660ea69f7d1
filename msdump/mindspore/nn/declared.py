"""Cells whose constructors are declared, and layers that are one function and its settings."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from msdump.mindspore.common import declared
from msdump.mindspore.common.declared import SELF
from msdump.mindspore.common.signatures import signature_of
from msdump.mindspore.nn.cell import Cell


class Declared(declared.Declared, Cell):
    """A cell whose constructor is declared as text.

    shows   settings that `repr` shows, as `name` or `label:name`; "*" shows all
    """

    _shown: ClassVar[tuple[tuple[str, str], ...]] = ()

    def __init_subclass__(cls, shows: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if shows:
            words = [word.partition(":") for word in (cls.settings if shows == "*" else shows.split())]
            cls._shown = tuple((label, name or label) for label, _, name in words)

    def _begin(self, settings: dict[str, Any]) -> None:
        Cell.__init__(self)

    def extend_repr(self) -> str:
        return ", ".join(f"{label}={getattr(self, name)}" for label, name in self._shown)


def as_layer(check: Callable[..., None] | None = None, base: type[Declared] = Declared) -> Callable[..., Any]:
    """Decorator: the function becomes the cell that calls it.

    Its parameters are those of `construct`; what stands behind `*` are settings: the constructor takes them in this
    order, and each is an attribute of the cell.

    check   gets the settings by name, and raises for those that do not fit
    """

    def declare(function: Callable[..., Any]) -> Any:
        parameters = inspect.signature(function).parameters.values()
        inputs = [each for each in parameters if each.kind is not each.KEYWORD_ONLY]
        positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
        takes = [each.replace(kind=positional) for each in parameters if each.kind is each.KEYWORD_ONLY]
        made = _layer(function.__name__, function, inputs, function.__module__, base, takes=inspect.Signature(takes))
        if check is not None:
            made._set_up = lambda self: check(**{name: getattr(self, name) for name in made.settings})
        return made

    return declare


def layers(
    table: str, functions: Mapping[str, Any], module: str, base: type[Declared] = Declared, **options: Any
) -> dict[str, Any]:
    """Name -> cell that calls one function with its settings, of a table with a line for each.

    table      `Name function input ... | setting ...`; the settings, as `Declared` takes them, go on by name. A line
               may break before `|`
    functions  those that compute, by name; a cell says what its function says
    options    of the classes
    """
    made = {}
    for line in re.sub(r"\n\s*\|", " |", table).strip().splitlines():
        head, _, takes = line.partition("|")
        name, function, *inputs = head.split()
        parameters = list(signature_of(inputs).parameters.values())
        made[name] = _layer(name, functions[function], parameters, module, base, takes=takes, **options)
    return made


def _layer(
    name: str, function: Callable[..., Any], inputs: list[inspect.Parameter], module: str, base: type[Declared],
    **options: Any,
) -> Any:  # fmt: skip
    def construct(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs, **{each: getattr(self, each) for each in made.settings})

    construct.__qualname__ = f"{name}.construct"
    construct.__signature__ = inspect.Signature([SELF, *inputs])  # type: ignore[attr-defined]
    namespace = {"construct": construct, "__doc__": function.__doc__, "__module__": module}
    made: Any = types.new_class(name, (base,), options, lambda own: own.update(namespace))
    return made
