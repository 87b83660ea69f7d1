"""One option of a CompilerConfig: what it takes, and what it says when it gets something else.

The first line of each message is TorchAir's; the second one is where and how to fix it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

from msdump.errors import ConfigError

INT64_MAX = 2**63 - 1


class OptionTypeError(ConfigError, TypeError):
    """An option that got a value of a wrong type, where TorchAir raises TypeError."""


class OptionPathError(ConfigError, FileNotFoundError):
    """An option that got a path where nothing is, where TorchAir raises FileNotFoundError."""


class OptionValue:
    """An option that takes one of a list, or anything when there is none.

    `value` reads as text, and True and False as "1" and "0", as TorchAir hands them to the compiler.
    """

    def __init__(self, default: Any, optional: Sequence[Any] | None = None) -> None:
        self.default = default
        self.optional = optional
        self.where = "this option"
        self.raw = default

    def __bool__(self) -> bool:
        return bool(self.raw)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.where} = {self.raw!r}>"

    @property
    def value(self) -> Any:
        return None if self.raw is None else {"True": "1", "False": "0"}.get(str(self.raw), str(self.raw))

    @value.setter
    def value(self, value: Any) -> None:
        self.raw = self._checked(value)

    @property
    def is_default(self) -> bool:
        return bool(self.raw == self.default)

    def _checked(self, value: Any) -> Any:
        if self.optional is not None and value not in self.optional:
            raise ConfigError(
                f"Value {value!r} (type: {type(value)}) not in optional list {self.optional!r} "
                f"(type: {type(self.optional[0])}).\n"
                f"{self.where}: expected one of {self.optional}, got {value!r}. Set one of these, or leave it alone."
            )
        return value


class RawOption(OptionValue):
    """An option whose value reads as it was set."""

    @property
    def value(self) -> Any:
        return self.raw

    @value.setter
    def value(self, value: Any) -> None:
        self.raw = self._checked(value)


class IntRangeValue(OptionValue):
    """An option that takes an integer between two, both included."""

    def __init__(self, default: int | None, minimum: int, maximum: int) -> None:
        super().__init__(default)
        self.minimum, self.maximum = minimum, maximum

    def _checked(self, value: Any) -> Any:
        if not isinstance(value, int):
            raise ConfigError(
                f"Please set integer type, but got {type(value)}\n"
                f"{self.where}: expected an integer from {self.minimum} to {self.maximum}, got {value!r}."
            )
        if not self.minimum <= value <= self.maximum:
            raise ConfigError(
                f"Please set value in [{self.minimum}, {self.maximum}], {value} is out of range.\n"
                f"{self.where}: expected an integer of that range, got {value}."
            )
        return value


class TypedValue(RawOption):
    """An option that takes None or values of one type."""

    def __init__(self, default: Any, kind: type, kind_name: str) -> None:
        super().__init__(default)
        self.kind, self.kind_name = kind, kind_name

    def _checked(self, value: Any) -> Any:
        if value is not None and not isinstance(value, self.kind):
            raise OptionTypeError(
                f"value must be {self.kind_name} or None, got {type(value)}\n"
                f"{self.where}: expected {self.kind_name} or None, got {value!r}."
            )
        return value


class DictOptionValue(TypedValue):
    """An option that takes a dict or None."""

    def __init__(self, default: dict[Any, Any] | None) -> None:
        super().__init__(default, dict, "dict")


class CallableValue(RawOption):
    """An option that takes a function or None."""

    def _checked(self, value: Any) -> Any:
        if value is not None and not callable(value):
            raise OptionTypeError(
                f"value must be Callable or None, got {type(value)}\n"
                f"{self.where}: expected a function or None, got {value!r}."
            )
        return value


class FileValue(OptionValue):
    """An option that takes the path of a file, or None."""

    def _checked(self, value: Any) -> Any:
        if value is not None and not os.path.isfile(value):
            raise OptionPathError(
                f"Please set legal file path, {value} is not found or is not a file!\n"
                f"{self.where}: expected the path of a file, got {value!r}. Make the file first."
            )
        return value


class MustExistedPathValue(OptionValue):
    """An option that takes the path of a folder."""

    def _checked(self, value: Any) -> Any:
        if value is None or not os.path.isdir(value):
            raise OptionPathError(
                f"Please set legal dir path, {value} is not found or is not a file directory!\n"
                f"{self.where}: expected the path of a folder, got {value!r}. Make the folder first."
            )
        return value


class MustExistedFileAddr(OptionValue):
    """An option that takes the path of a .json file, or None."""

    def _checked(self, value: Any) -> Any:
        if value is None:
            return None
        if value == "":
            raise ConfigError(
                f"File path cannot be empty!\n{self.where}: expected the path of a .json file or None, got ''."
            )
        if not (os.path.isfile(value) and os.fspath(value).endswith(".json")):
            raise OptionPathError(
                f"Please set legal file path, {value} is not found or is not '.json' file!\n"
                f"{self.where}: expected the path of a .json file, got {value!r}."
            )
        return value


class RegexValue(OptionValue):
    """An option that takes text of a given form; None stands for the default.

    pattern  as TorchAir writes it in its message
    quick    the same language in a form that no text makes slow; None when `pattern` is one
    """

    def __init__(self, default: str, pattern: str, example: str, quick: str | None = None) -> None:
        super().__init__(default)
        self.pattern, self.example = pattern, example
        self._matcher = re.compile(quick or pattern)

    def _checked(self, value: Any) -> Any:
        if value is None:
            return self.default
        if not isinstance(value, str):
            raise OptionTypeError(
                f"expected string or bytes-like object, got '{type(value).__name__}'\n"
                f'{self.where}: expected text such as "{self.example}", got {value!r}.'
            )
        if not self._matcher.fullmatch(value):
            raise ConfigError(
                f"Please set legal regex value format match {self.pattern}, {value} is Illegal format, "
                f"correct example:{self.example}.\n"
                f'{self.where}: expected text such as "{self.example}", got "{value}".'
            )
        return value


class PathValue(OptionValue):
    """An option that takes the path of a folder that is made when it is missing; it reads as plain text."""

    def _checked(self, value: Any) -> Any:
        if not isinstance(value, (str, os.PathLike)):
            raise OptionTypeError(
                f"expected str, bytes or os.PathLike object, not {type(value).__name__}\n"
                f"{self.where}: expected the path of a folder, got {value!r}. Leave it alone for the current folder."
            )
        if "\0" in os.fspath(value):
            raise ConfigError(f"embedded null byte\n{self.where}: expected the path of a folder, got {value!r}.")
        return os.path.realpath(value)
