"""Which rows of statistics, and in which order: a condition, a column to sort by, a number of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from msdump.analysis.stat.condition import as_text, parse_condition
from msdump.analysis.stat.rows import COLUMNS, TensorStatistics, row_values
from msdump.errors import ConfigError, did_you_mean
from msdump.tables.frames import FLAG, INTEGER, NUMBER, Column

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
