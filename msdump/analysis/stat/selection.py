"""Which rows of statistics, and in which order: a condition, a column to sort by, a number of rows.

A condition is a text such as `nan>0` or `op_type==MatMul and max>1e4`: comparisons of a column with a value, joined by
`and`, `or`, `not` and parentheses. It is parsed here and never handed to Python.

    condition = parse_condition("nan > 0 or not l2norm < 1e4", COLUMNS)
    [row for row in rows if condition(row)]
"""

from __future__ import annotations

import fnmatch
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msdump.analysis.stat.rows import COLUMNS, TensorStatistics, row_values
from msdump.errors import ConfigError, did_you_mean
from msdump.tables.frames import FLAG, INTEGER, NUMBER, SIZES, TEXT, Column

Values = Mapping[str, Any]
Condition = Callable[[Values], bool]
_TOKEN = re.compile(
    r"""\s*(?:(?P<sign>==|!=|<=|>=|<|>|=|~|\(|\))|(?P<quoted>"[^"]*"|'[^']*')|(?P<word>[^\s()<>=!~"']+))"""
)
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_SIGNS = ("==", "!=", "~", *_ORDER)
_FLAGS = {"true": True, "yes": True, "false": False, "no": False}
_GRAMMAR = (
    f"COLUMN SIGN VALUE, joined by and, or, not and ( ), where SIGN is one of {' '.join(_SIGNS)} and ~ takes a glob; "
    "such as: nan>0, op_type==MatMul and max>1e4"
)
_DEPTH = 50  # of parentheses: beyond it Python's own stack would end


def parse_condition(text: str, columns: Sequence[Column]) -> Condition:
    """The condition as a function of a row by column names.

    Edges:   what is not known (None) meets no comparison but `!=`; NaN of a NUMBER is not below, above or equal to
             anything but `nan`; texts of shapes are sizes with `x` ("2x3").
    Raises:  ConfigError that says at which character, and what is allowed there.
    """
    return _Parser(text, columns).parse()


class _Parser:
    """One text, from its beginning to its end."""

    def __init__(self, text: str, columns: Sequence[Column]) -> None:
        self._text = text
        self._kinds = {column.name: column.kind for column in columns}
        self._tokens = self._split()
        self._next = 0
        self._depth = 0

    def parse(self) -> Condition:
        condition = self._either()
        if self._next < len(self._tokens):
            raise self._wrong("and, or, or the end")
        return condition

    def _split(self) -> list[tuple[int, str, bool]]:
        """(place, text, whether it is quoted) of each token."""
        tokens, place, end = [], 0, len(self._text.rstrip())
        while place < end:
            match = _TOKEN.match(self._text, place)
            if match is None:
                raise self._error(place, "a column, a sign or a value", repr(self._text[place:].strip()[:1]))
            quoted = match["quoted"]
            token = quoted[1:-1] if quoted is not None else match["sign"] or match["word"]
            tokens.append((match.start(match.lastgroup or 0), token, quoted is not None))
            place = match.end()
        return tokens

    def _either(self) -> Condition:
        parts = [self._both()]
        while self._takes("or"):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else lambda row: any(part(row) for part in parts)

    def _both(self) -> Condition:
        parts = [self._single()]
        while self._takes("and"):
            parts.append(self._single())
        return parts[0] if len(parts) == 1 else lambda row: all(part(row) for part in parts)

    def _single(self) -> Condition:
        negations = 0
        while self._takes("not"):
            negations += 1
        condition = self._group() if self._takes("(") else self._comparison()
        return condition if negations % 2 == 0 else lambda row: not condition(row)

    def _group(self) -> Condition:
        self._depth += 1
        if self._depth > _DEPTH:
            raise self._wrong(f"at most {_DEPTH} parentheses in each other")
        condition = self._either()
        if not self._takes(")"):
            raise self._wrong("and, or, or )")
        self._depth -= 1
        return condition

    def _comparison(self) -> Condition:
        name = self._word("a column")
        kind = self._kinds.get(name)
        if kind is None:
            self._next -= 1
            hint = did_you_mean(name, self._kinds)
            raise self._wrong(f"a column ({', '.join(self._kinds)})", hint)
        sign = self._peek()
        sign = "==" if sign == "=" else sign
        if sign not in _SIGNS:
            raise self._wrong(f"one of {' '.join(_SIGNS)}")
        if sign in _ORDER and kind not in (INTEGER, NUMBER):
            raise self._wrong(f"== != or ~ for {name}, which is no number")
        if sign == "~" and kind not in (TEXT, SIZES):
            raise self._wrong(f"== != < <= > or >= for {name}, which is no text")
        self._next += 1
        return _comparison(name, sign, self._value(name, kind))

    def _value(self, name: str, kind: str) -> Any:
        text = self._word("a value")
        try:
            if kind in (INTEGER, NUMBER):
                return float(text) if kind == NUMBER or not re.fullmatch(r"[+-]?[0-9]{1,30}", text) else int(text)
            if kind == FLAG:
                return _FLAGS[text.lower()]
        except (ValueError, KeyError):
            self._next -= 1
            raise self._wrong(f"a number for {name}" if kind != FLAG else f"true or false for {name}") from None
        return text

    def _word(self, expected: str) -> str:
        if self._next >= len(self._tokens):
            raise self._wrong(expected)
        _, text, is_quoted = self._tokens[self._next]
        if not is_quoted and (text in _SIGNS or text in ("=", "(", ")", "and", "or", "not")):
            raise self._wrong(expected)
        self._next += 1
        return text

    def _peek(self) -> str | None:
        if self._next >= len(self._tokens):
            return None
        _, text, is_quoted = self._tokens[self._next]
        return None if is_quoted else text

    def _takes(self, text: str) -> bool:
        if self._peek() != text:
            return False
        self._next += 1
        return True

    def _wrong(self, expected: str, hint: str = "") -> ConfigError:
        if self._next < len(self._tokens):
            place, text, _ = self._tokens[self._next]
            return self._error(place, expected, f'"{text}"', hint)
        return self._error(len(self._text), expected, "the end", hint)

    def _error(self, place: int, expected: str, got: str, hint: str = "") -> ConfigError:
        advice = f" {hint}" if hint else ""
        return ConfigError(
            f'--where "{self._text}", character {place + 1}: expected {expected}, got {got}.{advice} '
            f"Allowed: {_GRAMMAR}."
        )


def _comparison(name: str, sign: str, value: Any) -> Condition:
    if sign == "~":
        return lambda row: row[name] is not None and fnmatch.fnmatchcase(as_text(row[name]), value)
    if sign in _ORDER:
        compare = _ORDER[sign]
        return lambda row: row[name] is not None and compare(row[name], value)

    def is_equal(row: Values) -> bool:
        own = row[name]
        if isinstance(value, float) and math.isnan(value):
            return isinstance(own, float) and math.isnan(own)
        return own is not None and (as_text(own) if isinstance(value, str) else own) == value

    return is_equal if sign == "==" else lambda row: not is_equal(row)


def as_text(value: Any) -> str:
    """A value of a TEXT or SIZES column; sizes as "2x3", those of a scalar as "()"."""
    return "x".join(map(str, value)) or "()" if isinstance(value, (list, tuple)) else str(value)


# Those of the table, and one that people ask for.
SELECTABLE = (*COLUMNS, Column("inf", INTEGER, "elements that are -Inf or +Inf"))
_BY_NAME = {column.name: column for column in SELECTABLE}


def select_rows(
    rows: Sequence[TensorStatistics],
    *,
    where: str | None = None,
    sort: str | None = None,
    is_reversed: bool = False,
    top: int | None = None,
) -> tuple[TensorStatistics, ...]:
    """Rows that meet a condition, sorted by a column, and the first of them.

    sort         numbers begin with the largest, before them NaN; texts with the smallest; equal ones keep the order of
                 execution. None: the order of execution
    is_reversed  the other way round; what is not known stays at the end
    Raises:      ConfigError of a condition or column that is wrong.
    """
    condition = None if where is None else parse_condition(where, SELECTABLE)
    if sort is not None:
        columns_named((sort,), "--sort")
    if top is not None and top < 1:
        raise ConfigError(f"--top: expected a number from 1 on, got {top}.")
    values = [(row, _values(row)) for row in rows] if condition or sort else [(row, {}) for row in rows]
    if condition is not None:
        values = [value for value in values if condition(value[1])]
    if sort is not None:
        known = [value for value in values if value[1][sort] is not None]
        unknown = [value for value in values if value[1][sort] is None]
        is_number = _BY_NAME[sort].kind in (INTEGER, NUMBER, FLAG)
        known.sort(key=lambda entry: _key(entry[1][sort]), reverse=is_number != is_reversed)
        values = [*known, *unknown]
    return tuple(row for row, _ in values[:top])


def columns_named(names: Sequence[str], where: str) -> tuple[Column, ...]:
    """Columns by their names.   Raises: ConfigError of a name that is none."""
    for name in names:
        if name not in _BY_NAME:
            hint = did_you_mean(name, _BY_NAME)
            advice = f" {hint}" if hint else ""
            raise ConfigError(f"{where}: expected a column, got {name!r}.{advice} Columns: {', '.join(_BY_NAME)}.")
    return tuple(_BY_NAME[name] for name in names)


def cells(row: TensorStatistics, columns: Sequence[Column]) -> tuple[str, ...]:
    """Values of a row as text; "-" for what is not known."""
    values = _values(row)
    return tuple(_cell(values[column.name], column.kind) for column in columns)


def _cell(value: Any, kind: str) -> str:
    if value is None:
        return "-"
    if kind == FLAG:
        return "yes" if value else "no"
    return f"{value:g}" if kind == NUMBER else as_text(value)


def _values(row: TensorStatistics) -> dict[str, Any]:
    values = row_values(row)
    parts = [values[name] for name in ("negative_inf", "positive_inf") if values[name] is not None]
    return {**values, "inf": sum(parts) if parts else None}


def _key(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return (1, 0.0)
    return (0, value) if isinstance(value, (int, float)) else as_text(value)
