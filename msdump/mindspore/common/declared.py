"""Classes whose constructors are declared: their settings as text, and what each kind of setting must be."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from msdump.mindspore.common.signatures import bound_arguments, declared


@dataclass(frozen=True)
class Kind:
    """What a setting of one kind must be.

    types   its classes, () for any; a bool is an instance of bool alone
    fits    whether a value of these classes is right
    must    what a value that is not must, for the message
    says    the message for another class, of `name`, `types`, `value`, its class `cls` and the name of that, `type`
    """

    types: tuple[type, ...] = ()
    fits: Callable[[Any], bool] = lambda _: True
    must: str = ""
    says: str = "the type of '{name}' must be {types}, but got {type}."

    def __call__(self, where: str, name: str, value: Any) -> None:
        """Raises: TypeError, ValueError for a value that `where` cannot take."""
        if self.types and (not isinstance(value, self.types) or (isinstance(value, bool) and bool not in self.types)):
            types = " or ".join(each.__name__ for each in self.types)
            text = self.says.format(name=name, types=types, value=value, cls=type(value), type=type(value).__name__)
            raise TypeError(f"For '{where}', {text}")
        if not self.fits(value):
            raise ValueError(f"For '{where}', the '{name}' must {self.must}, but got {value}.")


def check_sizes(where: str, **sizes: Any) -> None:
    """Raises: as `_WHOLE`, for each size, and for each of a tuple or list of sizes."""
    for name, size in sizes.items():
        for each in size if isinstance(size, tuple | list) else (size,):
            _WHOLE(where, name, each)


def _above_0(value: Any) -> bool:
    return bool(value > 0)


def _from_0(value: Any) -> bool:
    return bool(value >= 0)


_WHOLE = Kind((int,), _above_0, "be int and must > 0", "the '{name}' must be int, but got {type} {value!r}.")
_RATE = "the argument '{name}' must be type of {types}, but got {type}."
_VALUE = "the type of '{name}' must be {types}, but got {value!r}."
_CLASS = "the '{name}' must be {types}, but got {cls}."
# Kind -> check of (where, name, value), which raises; what it returns, but None, takes the place of the value.
KINDS: dict[str, Callable[[str, str, Any], Any]] = {
    "size": lambda where, name, value: check_sizes(where, **{name: value}),
    "number": Kind((float, int)),
    "float": Kind((float,)),
    "bool": Kind((bool,)),
    "count": Kind((int,), _above_0, "be > 0"),
    "width": Kind((float, int), _from_0, "be >= 0"),
    "part": Kind((float,), lambda value: 0 <= value < 1, "be a number in range [0, 1)"),
    "beta": Kind((float,), lambda value: 0 < value < 1, "be in range (0.0, 1.0)"),
    "epsilon": Kind((float,), _above_0, "be > 0"),
    "amount": Kind((float,), _from_0, "be >= 0"),
    "above_0": Kind(fits=_above_0, must="be > 0"),
    "from_0": Kind(fits=_from_0, must="be >= 0"),
    "least_0": Kind(fits=_from_0, must="be at least 0.0"),
    "share": Kind(fits=lambda value: 0 <= value <= 1, must="be in range [0, 1]"),
    "features": Kind(fits=lambda value: value >= 1, must="be at least 1"),
    "channels": Kind((int,), _above_0, "be at least 1", "the type of '{name}' must be {types}, got {value!r}."),
    "parts": Kind((int,), _above_0, "be > 0", _VALUE),
    "window": Kind((int,), _above_0, "be positive"),
    "margin": Kind((int,), _from_0, "be positive"),
    "steps": Kind((int,), _above_0, "be > 0", "the '{name}' must be {types}, but got {type}."),
    "rate": Kind((float,), _above_0, "be > 0.0", _RATE),
    "rate_from_0": Kind((float,), _from_0, "be >= 0.0", _RATE),
    "any_rate": Kind((float,), says=_RATE),
    "epochs": Kind((int,), says=_CLASS),
    "factor": Kind((float,), says=_CLASS),
    "factors": Kind((float, int), says=_CLASS),
    "list": Kind((list,), says=_CLASS),
    "way": Kind(fits=("mean", "sum", "none").__contains__, must="be in ['mean', 'sum', 'none']"),
}


def checked_settings(
    where: str, signature: inspect.Signature, kinds: Mapping[str, str], args: Any, kwargs: Any
) -> dict[str, Any]:
    """Settings by name, each checked as its kind says.   Raises: TypeError, ValueError."""
    settings = bound_arguments(where, signature, args, kwargs)
    for name, kind in kinds.items():
        value = KINDS[kind](where, name, settings[name])
        settings[name] = settings[name] if value is None else value
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


def variants(base: type[Any], module: str, **rows: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """Classes that differ from their base by attributes alone, by name: of each what it says, and the attributes."""
    return {
        name: type(name, (base,), {"__doc__": doc, "__module__": module, **own}) for name, (doc, own) in rows.items()
    }
