"""torchair.ge.attr: values of attributes with the type that GE has for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msdump.frontends.torchair.ge import numbers


def Bool(value: Any) -> bool:
    return bool(value)


def DataType(value: Any) -> numbers.DataType:
    return numbers.DataType(value)


def Float(value: Any) -> float:
    return float(value)


def Int(value: Any) -> int:
    return int(value)


def Str(value: Any) -> str:
    return str(value)


def ListBool(values: Iterable[Any]) -> list[bool]:
    return [bool(value) for value in values]


def ListDataType(values: Iterable[Any]) -> list[int]:
    return [int(value) for value in values]


def ListFloat(values: Iterable[Any]) -> list[float]:
    return [float(value) for value in values]


def ListInt(values: Iterable[Any]) -> list[int]:
    return [int(value) for value in values]


def ListListFloat(values: Iterable[Iterable[Any]]) -> list[list[float]]:
    return [ListFloat(row) for row in values]


def ListListInt(values: Iterable[Iterable[Any]]) -> list[list[int]]:
    return [ListInt(row) for row in values]


def ListStr(values: Iterable[Any]) -> list[str]:
    return [str(value) for value in values]
