"""Classes whose constructors are declared: their settings as text, and what each kind of setting must be."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from msdump.mindspore.common.signatures import bound_arguments, declared


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


def check_type(where: str, name: str, value: Any, *kinds: type) -> None:
    """Raises: TypeError for another type than these; a bool is no number."""
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        expected = " or ".join(kind.__name__ for kind in kinds)
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


class Declared:
    """Base of classes whose constructors are declared as text.

    takes   settings, as `declared` reads them; `name:kind=default` is checked as KINDS say

    Each setting becomes an attribute, but those that `_set_up` names as its parameters (all for `**settings`): it gets
    them, after the others are set, and makes what the object works with.
    """

    settings: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, takes: str | inspect.Signature | None = None, **kwargs: Any) -> None:
        if takes is not None:
            cls.__init__ = _constructor(cls, takes)  # type: ignore[method-assign]
        super().__init_subclass__(**kwargs)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def _begin(self, settings: dict[str, Any]) -> None:
        """Before there is a setting; what a base class has use for it may take away."""

    def _set_up(self, *args: Any, **settings: Any) -> None:
        """Make parameters and operators; subclasses write it, with the settings that are no attributes."""


SELF = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)


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
    __init__.__signature__ = inspect.Signature([SELF, *signature.parameters.values()])  # type: ignore[attr-defined]
    return __init__
