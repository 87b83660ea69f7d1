"""Cells whose constructors are declared: their settings as text, and layers that are one function and its settings."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from msdump.mindspore.common.signatures import declared, signature_of
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.ops.primitive import bound_arguments


def check_whole(where: str, name: str, value: Any) -> None:
    """Raises: TypeError for what is no int, ValueError for one below 1."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"For '{where}', the '{name}' must be int, but got {type(value).__name__} {value!r}.")
    if value < 1:
        raise ValueError(f"For '{where}', the '{name}' must be int and must > 0, but got {value!r}.")


def check_sizes(where: str, **sizes: Any) -> None:
    """Raises: as `check_whole`, for each size, and for each of a tuple or list of sizes."""
    for name, size in sizes.items():
        for each in size if isinstance(size, tuple | list) else (size,):
            check_whole(where, name, each)


def check_type(where: str, name: str, value: Any, *kinds: type, what: str = "") -> None:
    """Raises: TypeError for another type than these, whose names are `what`; a bool is no number."""
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        expected = what or " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(f"For '{where}', the type of '{name}' must be {expected}, but got {type(value).__name__}.")


def check_number(where: str, name: str, value: Any) -> None:
    """Raises: TypeError for what is no number."""
    check_type(where, name, value, float, int)


def _check_count(where: str, name: str, value: Any) -> None:
    check_type(where, name, value, int)
    if value < 1:
        raise ValueError(f"For '{where}', the '{name}' must be > 0, but got {value}.")


def check_rate(where: str, name: str, value: Any, least: float | None = None) -> None:
    """Raises: TypeError for what is no float, ValueError below `least`; without it for what is not above 0."""
    if isinstance(value, bool) or not isinstance(value, float):
        raise TypeError(f"For '{where}', the argument '{name}' must be type of float, but got {type(value).__name__}.")
    if value <= 0 and (least is None or value < least):
        bound = "> 0.0" if least is None else f">= {least}"
        raise ValueError(f"For '{where}', the '{name}' must be {bound}, but got {value}.")


def check_steps(where: str, name: str, value: Any) -> None:
    """Raises: TypeError for what is no int, ValueError for what is not above 0."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"For '{where}', the '{name}' must be int, but got {type(value).__name__}.")
    if value < 1:
        raise ValueError(f"For '{where}', the '{name}' must be > 0, but got {value}.")


def _check_above(where: str, name: str, value: Any) -> None:
    if value <= 0:
        raise ValueError(f"For '{where}', the '{name}' must be > 0, but got {value}.")


def _check_least(where: str, name: str, value: Any) -> None:
    if value < 0:
        raise ValueError(f"For '{where}', the '{name}' must be >= 0, but got {value}.")


def _check_way(where: str, name: str, value: Any) -> None:
    ways = ["mean", "sum", "none"]
    if value not in ways:
        raise ValueError(f"For '{where}', the '{name}' must be in {ways}, but got {value}.")


# Kind of a setting -> its check, which gets the class, the name and the value.
KINDS: dict[str, Callable[[str, str, Any], None]] = {
    "size": lambda where, name, value: check_sizes(where, **{name: value}),
    "number": check_number,
    "float": lambda where, name, value: check_type(where, name, value, float),
    "bool": lambda where, name, value: check_type(where, name, value, bool),
    "count": _check_count,
    "way": _check_way,
    "rate": check_rate,
    "rate_from_0": lambda where, name, value: check_rate(where, name, value, 0.0),
    "steps": check_steps,
    "above_0": _check_above,
    "from_0": _check_least,
}


def checked_settings(
    where: str, signature: inspect.Signature, kinds: Mapping[str, str], args: Any, kwargs: Any
) -> dict[str, Any]:
    """Settings by name, each checked as its kind says.   Raises: TypeError, ValueError."""
    settings = bound_arguments(where, signature, args, kwargs)
    for name, kind in kinds.items():
        KINDS[kind](where, name, settings[name])
    return settings


_SELF = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Declared(Cell):
    """A cell whose constructor is declared as text.

    takes   settings, as `signature_of` reads them; `name:kind=default` is checked as KINDS say
    shows   those that `repr` shows, as `name` or `label:name`; "*" shows all

    Each setting becomes an attribute, but those that `_set_up` names as its parameters (all for `**settings`): it gets
    them, after the others are set, and makes what the cell computes with.
    """

    settings: ClassVar[tuple[str, ...]] = ()
    _shown: ClassVar[tuple[tuple[str, str], ...]] = ()

    def __init_subclass__(cls, takes: str | inspect.Signature | None = None, shows: str = "", **kwargs: Any) -> None:
        if takes is not None:
            cls.__init__ = _constructor(cls, takes)  # type: ignore[method-assign]
        if shows:
            words = [word.partition(":") for word in (cls.settings if shows == "*" else shows.split())]
            cls._shown = tuple((label, name or label) for label, _, name in words)
        super().__init_subclass__(**kwargs)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def _begin(self, settings: dict[str, Any]) -> None:
        """Be a cell, before it has a setting; what a base class has use for it may take away."""
        Cell.__init__(self)

    def _set_up(self, *args: Any, **settings: Any) -> None:
        """Make parameters and operators; subclasses write it, with the settings that are no attributes."""

    def extend_repr(self) -> str:
        return ", ".join(f"{label}={getattr(self, name)}" for label, name in self._shown)


def _constructor(cls: type[Declared], takes: str | inspect.Signature) -> Callable[..., None]:
    signature, kinds = declared(takes) if isinstance(takes, str) else (takes, {})
    own = None if cls._set_up is Declared._set_up else cls._set_up
    wanted = inspect.signature(own).parameters if own else {}
    takes_all = any(each.kind is each.VAR_KEYWORD for each in wanted.values())
    handed = [name for name in signature.parameters if takes_all or name in wanted]
    kept = tuple(name for name in signature.parameters if name not in handed)

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        settings = checked_settings(type(self).__name__, signature, kinds, args, kwargs)
        self._begin(settings)
        for name in kept:
            if name in settings:
                setattr(self, name, settings[name])
        self._set_up(**{name: settings[name] for name in handed})

    cls.settings = kept
    __init__.__qualname__ = f"{cls.__name__}.__init__"
    __init__.__signature__ = inspect.Signature([_SELF, *signature.parameters.values()])  # type: ignore[attr-defined]
    return __init__


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
    name: str,
    function: Callable[..., Any],
    inputs: list[inspect.Parameter],
    module: str,
    base: type[Declared],
    **options: Any,
) -> Any:
    def construct(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs, **{each: getattr(self, each) for each in made.settings})

    construct.__qualname__ = f"{name}.construct"
    construct.__signature__ = inspect.Signature([_SELF, *inputs])  # type: ignore[attr-defined]
    namespace = {"construct": construct, "__doc__": function.__doc__, "__module__": module}
    made: Any = types.new_class(name, (base,), options, lambda own: own.update(namespace))
    return made
