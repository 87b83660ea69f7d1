"""torchair.ge.attr: values of attributes with the type that GE has for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msdump.torchair.ge import numbers


def Bool(value: Any) -> bool:
    """A bool."""
    return bool(value)


def DataType(value: Any) -> numbers.DataType:
    """A dtype, given as a DataType or its number."""
    return numbers.DataType(value)


def Float(value: Any) -> float:
    """A float."""
    return float(value)


def Int(value: Any) -> int:
    """An int."""
    return int(value)


def Str(value: Any) -> str:
    """Text."""
    return str(value)


def ListBool(values: Iterable[Any]) -> list[bool]:
    """A list of bools."""
    return [bool(value) for value in values]


def ListDataType(values: Iterable[Any]) -> list[int]:
    """A list of the numbers of dtypes."""
    return [int(value) for value in values]


def ListFloat(values: Iterable[Any]) -> list[float]:
    """A list of floats."""
    return [float(value) for value in values]


def ListInt(values: Iterable[Any]) -> list[int]:
    """A list of ints."""
    return [int(value) for value in values]


def ListListFloat(values: Iterable[Iterable[Any]]) -> list[list[float]]:
    """A list of lists of floats."""
    return [ListFloat(row) for row in values]


def ListListInt(values: Iterable[Iterable[Any]]) -> list[list[int]]:
    """A list of lists of ints."""
    return [ListInt(row) for row in values]


def ListStr(values: Iterable[Any]) -> list[str]:
    """A list of texts."""
    return [str(value) for value in values]
