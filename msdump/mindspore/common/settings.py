"""Attributes that scripts set and read, and that one device has no use for: checked and kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


def is_whole(value: Any) -> bool:
    """Is it an int that is not negative?"""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


@dataclass(eq=False)
class Setting:
    """An attribute with a default.

    expected  what a value must be, for the message; "" takes anything
    fits      whether a value is that
    default   its value at first; a function makes one for each object
    """

    default: Any
    expected: str = ""
    fits: Callable[[Any], bool] = lambda _: True
    name: str = field(default="", init=False)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, thing: Any, owner: type | None = None) -> Any:
        if thing is None:
            return self
        kept = thing.__dict__
        if self.name not in kept:
            kept[self.name] = self.default() if callable(self.default) else self.default
        return kept[self.name]

    def __set__(self, thing: Any, value: Any) -> None:
        """Raises: TypeError for a value that does not fit."""
        if not self.fits(value):
            raise TypeError(f"{type(thing).__name__}.{self.name}: expected {self.expected}, got {value!r}.")
        thing.__dict__[self.name] = value


def flag(default: bool) -> Setting:
    """An attribute that is a bool."""
    return Setting(default, "a bool", lambda value: isinstance(value, bool))


def number(default: int) -> Setting:
    """An attribute that is an int of 0 or more."""
    return Setting(default, "an int of 0 or more", is_whole)


def of_kind(kind: Any, expected: str, default: Any) -> Setting:
    """An attribute of a class or one of several."""
    return Setting(default, expected, lambda value: isinstance(value, kind))
