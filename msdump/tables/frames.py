"""A table by columns; the same for pyarrow, polars and pandas, none of which msdump needs; tables of notebooks."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from msdump.errors import ConfigError, without_secrets
from msdump.tables.printable import printable

# Kinds of columns: what their values are, beside None.
INTEGER, NUMBER, TEXT, FLAG, SIZES = "integer", "number", "text", "flag", "sizes"
_INT64 = range(-(1 << 63), 1 << 63)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    kind     INTEGER (64 bits), NUMBER (float64), TEXT (UTF-8), FLAG (bool), SIZES (list of integers)
    meaning  for people
    """

    name: str
    kind: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Table:
    """Columns and their values, one for each row.

    Edges: None stands for what is not known; a NUMBER may be NaN or infinite.
    """

    columns: tuple[Column, ...]
    values: tuple[list[Any], ...]

    @property
    def row_count(self) -> int:
        return len(self.values[0]) if self.values else 0


def table_of(columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> Table:
    """A table of rows, whose values are made those that its columns hold.

    Edges: integers that need more than 64 bits become None; bytes of file names that are not UTF-8 become `\\xff`.
    """
    makers = [_MAKERS[column.kind] for column in columns]
    return Table(
        tuple(columns),
        tuple([None if row[i] is None else make(row[i]) for row in rows] for i, make in enumerate(makers)),
    )


def _integer(value: Any) -> int | None:
    number = int(value)
    return number if number in _INT64 else None


def utf8_text(value: Any) -> str:
    """Its text, without the secrets of addresses.

    Edges: bytes of file names that are not UTF-8 become `\\xff`, other halves of characters `\\ud800`.
    """
    text = without_secrets(str(value))
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _sizes(value: Any) -> list[int | None]:
    return [_integer(size) for size in value]


_MAKERS: dict[str, Callable[[Any], Any]] = {
    INTEGER: _integer,
    NUMBER: float,
    TEXT: utf8_text,
    FLAG: bool,
    SIZES: _sizes,
}


class Frame:
    """A result that is a table, too."""

    __slots__ = ()
    # Columns that a notebook shows; all of them where none are named.
    _shown: ClassVar[tuple[str, ...]] = ()

    def table(self) -> Table:
        """The result by columns."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        """What a notebook shows: the first rows."""
        table = self.table()
        names = self._shown or tuple(column.name for column in table.columns)
        values = {column.name: column_values for column, column_values in zip(table.columns, table.values, strict=True)}
        rows = zip(*(values[name] for name in names), strict=True)
        return html_table("", names, rows, table.row_count)

    def to_arrow(self) -> Any:
        """The table as pyarrow.Table.   Raises: ConfigError when pyarrow is not installed."""
        return arrow_table(self.table(), "to_arrow")

    def to_polars(self) -> Any:
        """The table as polars.DataFrame.   Raises: ConfigError when polars is not installed."""
        polars = optional_package("polars", "to_polars")
        types = {
            INTEGER: polars.Int64,
            NUMBER: polars.Float64,
            TEXT: polars.String,
            FLAG: polars.Boolean,
            SIZES: polars.List(polars.Int64),
        }
        table = self.table()
        series = [
            polars.Series(column.name, values, types[column.kind])
            for column, values in zip(table.columns, table.values, strict=True)
        ]
        return polars.DataFrame(series)

    def to_pandas(self) -> Any:
        """The table as pandas.DataFrame; of numbers, what is not known is NaN as well.

        Raises: ConfigError when pandas is not installed.
        """
        pandas = optional_package("pandas", "to_pandas")
        types = {INTEGER: "Int64", NUMBER: "float64", TEXT: "string", FLAG: "boolean", SIZES: "object"}
        table = self.table()
        return pandas.DataFrame(
            {
                column.name: pandas.Series(values, dtype=types[column.kind])
                for column, values in zip(table.columns, table.values, strict=True)
            }
        )

    def sql(self, query: str) -> Any:
        """The result of a query as duckdb's relation: `show()`, `fetchall()`, `df()`, `pl()`, `arrow()`.

        query   in DuckDB's SQL, about a table `tensors`. It runs with the rights of the caller; names out of a dump
                are values and no part of it
        Raises: ConfigError when duckdb is not installed; duckdb.Error for a wrong query.
        """
        return duckdb_connection({"tensors": self.table()}, "sql").sql(query)


def duckdb_connection(tables: Mapping[str, Table], what_for: str) -> Any:
    """A database in memory with these tables, whose names and columns are ours.

    Raises: ConfigError as `optional_package`.
    """
    database = optional_package("duckdb", what_for).connect()
    for name, table in tables.items():
        database.register(f"{name} as arrays", _duckdb_arrays(table))
        columns = ", ".join(f'{_duckdb_value(column)} AS "{column.name}"' for column in table.columns)
        database.execute(f'CREATE VIEW "{name}" AS SELECT {columns} FROM "{name} as arrays"')
    return database


_DUCKDB_TYPES = {INTEGER: "BIGINT", NUMBER: "DOUBLE", TEXT: "VARCHAR", FLAG: "BOOLEAN", SIZES: "BIGINT[]"}
_NULL, _NAN = " is null", " is nan"


def _duckdb_value(column: Column) -> str:
    # Masks of numpy mean nothing to DuckDB before 2.0, and a NaN is NULL to it: columns of their own tell both.
    name, kind = column.name, _DUCKDB_TYPES[column.kind]
    if column.kind in (TEXT, SIZES):
        return f'CAST("{name}" AS {kind})'
    value = (
        f"""CASE WHEN "{name}{_NAN}" THEN 'nan'::DOUBLE ELSE "{name}" END""" if column.kind == NUMBER else f'"{name}"'
    )
    return f'CASE WHEN "{name}{_NULL}" THEN NULL ELSE {value} END'


def _duckdb_arrays(table: Table) -> dict[str, Any]:
    arrays: dict[str, Any] = {}
    for column, values in zip(table.columns, table.values, strict=True):
        if column.kind in (TEXT, SIZES):
            objects = np.empty(len(values), object)
            objects[:] = values
            arrays[column.name] = objects
            continue
        dtype = {INTEGER: np.int64, NUMBER: np.float64, FLAG: np.bool_}[column.kind]
        data: Any = np.array([0 if value is None else value for value in values], dtype)
        arrays[column.name] = data
        arrays[column.name + _NULL] = np.array([value is None for value in values], np.bool_)
        if column.kind == NUMBER:
            arrays[column.name + _NAN] = np.isnan(data)
    return arrays


def arrow_table(table: Table, what_for: str) -> Any:
    """A table as pyarrow.Table.   Raises: ConfigError as `optional_package`."""
    pyarrow = optional_package("pyarrow", what_for)
    types = {
        INTEGER: pyarrow.int64(),
        NUMBER: pyarrow.float64(),
        TEXT: pyarrow.string(),
        FLAG: pyarrow.bool_(),
        SIZES: pyarrow.list_(pyarrow.int64()),
    }
    schema = pyarrow.schema([(column.name, types[column.kind]) for column in table.columns])
    arrays = [
        pyarrow.array(values, types[column.kind]) for column, values in zip(table.columns, table.values, strict=True)
    ]
    return pyarrow.Table.from_arrays(arrays, schema=schema)


def optional_package(name: str, what_for: str, instead: str = "") -> Any:
    """A package that msdump does without but for this.

    what_for  the call or option that needs it, which begins the message
    instead   what to do without it
    Raises:   ConfigError that says how to install it.
    """
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        advice = f"Install it (pip install {package}){f', or {instead}' if instead else ''}."
        raise ConfigError(f"{what_for}: expected the package {package}, got none. {advice}") from error


# -- tables of notebooks: bounded, without a script, every text escaped ------------------------------------------------

MAX_ROWS = 20


def html_table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]], row_count: int) -> str:
    """The first rows of a table; None is shown as –, a float with five digits.

    title      a sentence above it
    row_count  rows in all; what is not shown is said below
    """
    shown = list(islice(rows, MAX_ROWS))
    parts = [f"<p>{_text(title)}</p>"] if title else []
    head = "".join(f"<th>{_text(one)}</th>" for one in header)
    body = "".join(f"<tr>{''.join(f'<td>{_text(_cell(one))}</td>' for one in row)}</tr>" for row in shown)
    parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
    if row_count > len(shown):
        parts.append(f"<p>… {row_count - len(shown)} more of {row_count}</p>")
    return "\n".join(parts)


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.5g}"
    return "x".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _text(text: str) -> str:
    return html.escape(printable(text, "\n"))
