"""torchair.ge.attr: values of attributes with the type that GE has for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import SupportsFloat, SupportsIndex, SupportsInt

from msdump.torchair.ge import numbers


def Bool(value: object) -> bool:
    """A bool."""
    return bool(value)


def DataType(value: int) -> numbers.DataType:
    """A dtype, given as a DataType or its number."""
    return numbers.DataType(value)


def Float(value: SupportsFloat | SupportsIndex | str) -> float:
    """A float."""
    return float(value)


def Int(value: SupportsInt | SupportsIndex | str) -> int:
    """An int."""
    return int(value)


def Str(value: object) -> str:
    """Text."""
    return str(value)


def ListBool(values: Iterable[object]) -> list[bool]:
    """A list of bools."""
    return [bool(value) for value in values]


def ListDataType(values: Iterable[SupportsInt | SupportsIndex | str]) -> list[int]:
    """A list of the numbers of dtypes."""
    return [int(value) for value in values]


def ListFloat(values: Iterable[SupportsFloat | SupportsIndex | str]) -> list[float]:
    """A list of floats."""
    return [float(value) for value in values]


def ListInt(values: Iterable[SupportsInt | SupportsIndex | str]) -> list[int]:
    """A list of ints."""
    return [int(value) for value in values]


def ListListFloat(values: Iterable[Iterable[SupportsFloat | SupportsIndex | str]]) -> list[list[float]]:
    """A list of lists of floats."""
    return [ListFloat(row) for row in values]


def ListListInt(values: Iterable[Iterable[SupportsInt | SupportsIndex | str]]) -> list[list[int]]:
    """A list of lists of ints."""
    return [ListInt(row) for row in values]


def ListStr(values: Iterable[object]) -> list[str]:
    """A list of texts."""
    return [str(value) for value in values]
