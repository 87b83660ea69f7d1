"""Which rows of statistics, and in which order: a condition, a column to sort by, a number of rows.

A condition is a text such as `nan>0` or `op_type==MatMul and max>1e4`: comparisons of a column with a value, joined by
`and`, `or`, `not` and parentheses.

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
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_SIGNS = ("==", "!=", "~", *_ORDER)
_FLAGS = {"true": True, "yes": True, "false": False, "no": False}
_PART = re.compile(
    r"""\s*(?:(?P<word>and\b|or\b|not\b|[()])|(?P<column>[^\s()<>=!~"']+)\s*
    (?:(?P<sign>[=!<>]=|[<>=~])\s*(?P<value>"[^"]*"|'[^']*'|(?!(?:and|or|not)(?:[\s()]|$))[^\s()<>=!~"']+)?)?)""",
    re.VERBOSE,
)
_GRAMMAR = (
    f"COLUMN SIGN VALUE, joined by and, or, not and ( ), where SIGN is one of {' '.join(_SIGNS)} and ~ takes a glob; "
    "such as: nan>0, op_type==MatMul and max>1e4"
)
_DEPTH = 50  # of parentheses: Python's parser takes no more than some hundreds


def parse_condition(text: str, columns: Sequence[Column]) -> Condition:
    """The condition as a function of a row by column names.

    Edges:   what is not known (None) meets no comparison but `!=`; NaN of a NUMBER is not below, above or equal to
             anything but `nan`; texts of shapes are sizes with `x` ("2x3").
    Raises:  ConfigError that says at which character, and what is allowed there.
    """

    def wrong(place: int, expected: str, hint: str = "") -> ConfigError:
        rest = text[place:].lstrip()
        part = _PART.match(rest)
        got = f'"{part["word"] or part["column"]}"' if part else repr(rest[:1]) if rest else "the end"
        return ConfigError(
            f'--where "{text}", character {len(text) - len(rest) + 1}: expected {expected}, got {got}. '
            f"{hint + ' ' if hint else ''}Allowed: {_GRAMMAR}."
        )

    kinds = {column.name: column.kind for column in columns}
    tests: list[Condition] = []
    words: list[str] = []  # the condition, as Python joins the tests: nothing of the text itself is among them
    place, depth, is_whole = 0, 0, False
    while text[place:].strip():
        part = _PART.match(text, place)
        word = part["word"] if part else None
        if is_whole != (word in ("and", "or", ")")) or (word == ")" and not depth):
            raise wrong(place, ("and, or, or )" if depth else "and, or, or the end") if is_whole else "a column")
        if part is None or word is None:
            if part is None:
                raise wrong(place, "a column")
            words.append(f"tests[{len(tests)}](row)")
            tests.append(_comparison(part, kinds, wrong))
        elif word == "not" and words[-1:] == ["not"]:
            words.pop()
        else:
            words.append(word)
        place = part.end()
        depth += (word == "(") - (word == ")")
        if depth > _DEPTH:
            raise wrong(place, f"at most {_DEPTH} parentheses in each other")
        is_whole = word in (None, ")")
    if not is_whole or depth:
        raise wrong(len(text), "and, or, or )" if is_whole else "a column")
    condition: Condition = eval("lambda row: " + " ".join(words), {"__builtins__": {}, "tests": tests})
    return condition


def _comparison(part: re.Match[str], kinds: Mapping[str, str], wrong: Callable[..., ConfigError]) -> Condition:
    name, sign, text = part["column"], part["sign"], part["value"]
    kind = kinds.get(name)
    if kind is None:
        raise wrong(part.start("column"), f"a column ({', '.join(kinds)})", did_you_mean(name, kinds))
    if sign is None:
        raise wrong(part.end("column"), f"one of {' '.join(_SIGNS)}")
    if sign in _ORDER and kind not in (INTEGER, NUMBER):
        raise wrong(part.start("sign"), f"== != or ~ for {name}, which is no number")
    if sign == "~" and kind not in (TEXT, SIZES):
        raise wrong(part.start("sign"), f"== != < <= > or >= for {name}, which is no text")
    if text is None:
        raise wrong(part.end("sign"), "a value")
    value: Any = text[1:-1] if text[0] in "\"'" else text
    try:
        if kind in (INTEGER, NUMBER):
            value = float(value) if kind == NUMBER or not re.fullmatch(r"[+-]?[0-9]{1,30}", value) else int(value)
        elif kind == FLAG:
            value = _FLAGS[value.lower()]
    except (ValueError, KeyError):
        expected = f"a number for {name}" if kind != FLAG else f"true or false for {name}"
        raise wrong(part.start("value"), expected) from None
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

    return (lambda row: not is_equal(row)) if sign == "!=" else is_equal


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
