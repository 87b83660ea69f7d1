"""Options of a CompilerConfig: accepted values, error messages, and groups of options.

The first line of each message is TorchAir's; the second one is where and how to fix it.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, final

from msdump.config.linear_regex import LinearPattern, is_costly
from msdump.errors import ConfigError, did_you_mean, refused

INT64_MAX = 2**63 - 1

# Gets where the option stands and the value that it is set to; gives the value that it keeps.
Check = Callable[[str, Any], Any]


class OptionTypeError(ConfigError, TypeError):
    """An option that got a value of a wrong type, where TorchAir raises TypeError."""


class OptionPathError(ConfigError, FileNotFoundError):
    """An option that got a path where nothing is, where TorchAir raises FileNotFoundError."""


@final
class Option:
    """One option.

    default   what it is until it is set
    accepts   the values that it takes; or a check; None: it takes anything
    modes     modes of the CompilerConfig in which it does something here
    is_raw    its value reads as it was set, not as text
    plain     what its group gives in place of the option: None, the option itself; "value", its value; any other text
              stands for a value that is not set.   Source: TorchAir, `data_dump.filter` and the `path` properties
    where     its full name, such as `config.debug.run_eagerly`
    """

    def __init__(
        self,
        default: object,
        accepts: Sequence[object] | Check | None = None,
        modes: frozenset[str] = frozenset(),
        *,
        is_raw: bool = False,
        plain: str | None = None,
    ) -> None:
        self.default = self.raw = default
        self.optional = None if accepts is None or callable(accepts) else accepts
        self._check = accepts if callable(accepts) else None
        self.modes = modes
        self._is_raw = is_raw
        self._plain = plain
        self.where = "this option"

    def __bool__(self) -> bool:
        return bool(self.raw)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.where} = {self.raw!r}>"

    @property
    def value(self) -> Any:
        """Text, with True and False as "1" and "0", as TorchAir hands them to the compiler; None as it is.

        Raises: ConfigError, OptionTypeError or OptionPathError when it is set to what the option does not take.
        """
        if self._is_raw or self.raw is None:
            return self.raw
        return {"True": "1", "False": "0"}.get(str(self.raw), str(self.raw))

    @value.setter
    def value(self, value: object) -> None:
        if self._check is not None:
            value = self._check(self.where, value)
        elif self.optional is not None and value not in self.optional:
            kind, kinds = type(value), type(self.optional[0])
            first_line = f"Value {value!r} (type: {kind}) not in optional list {self.optional!r} (type: {kinds})."
            fix = "Set one of these, or leave it alone."
            raise ConfigError(refused(first_line, self.where, f"one of {self.optional}", repr(value), fix))
        self.raw = value

    @property
    def is_default(self) -> bool:
        """True when it holds what it holds unset."""
        return bool(self.raw == self.default)

    def read(self) -> Any:
        """What its group gives under its name."""
        if self._plain is None:
            return self
        return self._plain if self.raw is None and self._plain != "value" else self.value


class OptionTree:
    """Options and further groups under the names that it has, and no others. The whole tree, or a group in it.

    `group.name = value` and `group.name.value = value` both set an option. Reading gives the option itself; paths and
    functions read as what they hold.

    kind     name of TorchAir's class, with which its error texts begin
    is_open  whether names that begin with `_` may be set at will: TorchAir's own switches for itself
    """

    def __init__(self, kind: str, *, is_open: bool = False, **members: Option | OptionTree) -> None:
        object.__setattr__(self, "_kind", kind)
        object.__setattr__(self, "_is_open", is_open)
        object.__setattr__(self, "_members", members)
        self._name_members("config")

    def _name_members(self, where: str) -> None:
        object.__setattr__(self, "_where", where)
        for name, member in self._members.items():
            if isinstance(member, OptionTree):
                member._name_members(f"{where}.{name}")
            else:
                member.where = f"{where}.{name}"

    def __getattr__(self, name: str) -> Any:
        members: dict[str, object] = self.__dict__.get("_members", {})
        if name not in members:
            where, advice = self.__dict__.get("_where", "config"), did_you_mean(name, members)
            raise AttributeError(refused("", where, f"one of {sorted(members)}", repr(name), advice))
        member = members[name]
        return member.read() if isinstance(member, Option) else member

    def __setattr__(self, name: str, value: object) -> None:
        if name not in self._members and not (self._is_open and name.startswith("_")):
            first_line = f"{self._kind} has no option {name}, all options {list(self._members)}"
            advice = did_you_mean(name, self._members)
            raise ConfigError(refused(first_line, self._where, "one of these", repr(name), advice))
        member = self._members.get(name)
        if isinstance(member, OptionTree):
            raise ConfigError(
                f"{self._where}.{name}: expected one of its options to be set, got {value!r} for all of them. "
                f"They are {sorted(member._members)}."
            )
        if member is None:
            member = self._members[name] = Option(None, is_raw=True)
            member.where = f"{self._where}.{name}"
        member.value = value

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._members})

    def options(self) -> Iterator[Option]:
        """Every option below, in the order of the tree."""
        for member in self._members.values():
            if isinstance(member, OptionTree):
                yield from member.options()
            else:
                yield member


@final
class OptionGroup(OptionTree):
    """A branch of the tree."""


def integer(minimum: int, maximum: int) -> Check:
    """A check that takes an integer between two, both included."""

    def check(where: str, value: object) -> Any:
        if not isinstance(value, int):
            first_line = f"Please set integer type, but got {type(value)}"
            raise ConfigError(refused(first_line, where, f"an integer from {minimum} to {maximum}", repr(value)))
        if not minimum <= value <= maximum:
            first_line = f"Please set value in [{minimum}, {maximum}], {value} is out of range."
            raise ConfigError(refused(first_line, where, "an integer of that range", repr(value)))
        return value

    return check


@functools.cache
def _matcher(pattern: str) -> re.Pattern[str] | LinearPattern:
    compiled = re.compile(pattern)
    return LinearPattern(compiled) if is_costly(compiled) else compiled


def text(default: str, pattern: str, example: str) -> Check:
    """A check that takes text of a given form; None stands for the default.

    pattern  as TorchAir writes it in its message; matched in bounded time
    """
    matcher, expected = _matcher(pattern), f'text such as "{example}"'

    def check(where: str, value: object) -> Any:
        if value is None:
            return default
        if not isinstance(value, str):
            first_line = f"expected string or bytes-like object, got '{type(value).__name__}'"
            raise OptionTypeError(refused(first_line, where, expected, repr(value)))
        if not matcher.fullmatch(value):
            first_line = f"Please set legal regex value format match {pattern}, {value} is Illegal format, "
            raise ConfigError(refused(f"{first_line}correct example:{example}.", where, expected, f'"{value}"'))
        return value

    return check


def dictionary(where: str, value: object) -> Any:
    """A check that takes a dict or None."""
    if value is not None and not isinstance(value, dict):
        first_line = f"value must be dict or None, got {type(value)}"
        raise OptionTypeError(refused(first_line, where, "dict or None", repr(value)))
    return value


def function(where: str, value: object) -> Any:
    """A check that takes a function or None."""
    if value is not None and not callable(value):
        first_line = f"value must be Callable or None, got {type(value)}"
        raise OptionTypeError(refused(first_line, where, "a function or None", repr(value)))
    return value


def file(where: str, value: Any) -> Any:
    """A check that takes the path of a file, or None."""
    if value is not None and not os.path.isfile(value):
        first_line = f"Please set legal file path, {value} is not found or is not a file!"
        raise OptionPathError(refused(first_line, where, "the path of a file", repr(value), "Make the file first."))
    return value


def json_file(where: str, value: Any) -> Any:
    """A check that takes the path of a .json file, or None."""
    if value is None:
        return None
    if value == "":
        raise ConfigError(refused("File path cannot be empty!", where, "the path of a .json file or None", "''"))
    if not (os.path.isfile(value) and os.fspath(value).endswith(".json")):
        first_line = f"Please set legal file path, {value} is not found or is not '.json' file!"
        raise OptionPathError(refused(first_line, where, "the path of a .json file", repr(value)))
    return value


def folder(where: str, value: Any) -> Any:
    """A check that takes the path of a folder."""
    if value is None or not os.path.isdir(value):
        first_line = f"Please set legal dir path, {value} is not found or is not a file directory!"
        raise OptionPathError(refused(first_line, where, "the path of a folder", repr(value), "Make the folder first."))
    return value


def new_folder(where: str, value: object) -> Any:
    """A check that takes the path of a folder that is made when it is missing, and keeps it as an absolute one."""
    if not isinstance(value, (str, os.PathLike)):
        first_line = f"expected str, bytes or os.PathLike object, not {type(value).__name__}"
        fix = "Leave it alone for the current folder."
        raise OptionTypeError(refused(first_line, where, "the path of a folder", repr(value), fix))
    if "\0" in os.fspath(value):
        raise ConfigError(refused("embedded null byte", where, "the path of a folder", repr(value)))
    return os.path.realpath(value)
