"""One row for each tensor: as parquet, and in an SQLite database. docs/exports.md lists the columns."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from pathlib import Path
from typing import Any

from msdump._version import __version__
from msdump.analysis.exporting import Written, new_file
from msdump.analysis.overview.contents import Contents
from msdump.analysis.overview.dump import MORE_COLUMNS, tensor_table
from msdump.analysis.stat.rows import COLUMNS, write_parquet_table
from msdump.errors import WriteError
from msdump.formats.atomic import scratch_folder
from msdump.tables.frames import FLAG, INTEGER, NUMBER, SIZES, TEXT, Column, Table, table_of

# Of the tables below; it grows when a column changes its meaning or goes.
SCHEMA_VERSION = 1
_SQL_TYPES = {INTEGER: "INTEGER", NUMBER: "REAL", TEXT: "TEXT", FLAG: "INTEGER", SIZES: "TEXT"}
_OPERATORS = """
CREATE VIEW operators AS
SELECT rank, graph, iteration, operator, op_type, full_name, op_name, layer, source_path, source_line,
       count(*) AS tensors, sum(size_bytes) AS size_bytes, sum(nan) AS nan,
       sum(negative_inf) + sum(positive_inf) AS inf, max(error) AS error
FROM tensors GROUP BY rank, graph, iteration, operator, op_type, full_name, op_name
"""


def export(contents: Contents, to: str, path: str) -> Written:
    """Write the table.   Raises: as `Contents`; ConfigError where a package is absent; WriteError."""
    table = tensor_table(contents)
    target = new_file(path)
    if to == "parquet":
        write_parquet_table(table, target)
        return Written((target,))
    _write_database(contents, table, target)
    return Written((target,), _notes(table))


def _notes(table: Table) -> tuple[str, ...]:
    has_nan = any(
        value != value
        for column, values in zip(table.columns, table.values, strict=True)
        if column.kind == NUMBER
        for value in values
    )
    return ("SQLite has no NaN: means and norms that are NaN read as NULL; the column nan counts.",) if has_nan else ()


def _write_database(contents: Contents, table: Table, target: Path) -> None:
    # Beside its place, so that it comes there whole or not at all.
    with scratch_folder(target.parent) as scratch:
        temporary = scratch / target.name
        try:
            with contextlib.closing(sqlite3.connect(temporary)) as database, database:
                fill(database, contents, table)
            os.replace(temporary, target)
        except (sqlite3.Error, OSError) as error:
            raise WriteError(f"{target}: expected to write the database, got: {error}.") from error


def fill(database: sqlite3.Connection, contents: Contents, table: Table) -> None:
    """Make the tables `tensors`, `damaged` and `about` and the view `operators` in an empty database.

    Names are values and never part of a statement.   Raises: sqlite3.Error.
    """
    types = ", ".join(f"{column.name} {_SQL_TYPES[column.kind]}" for column in table.columns)
    database.execute(f"CREATE TABLE tensors ({types})")
    marks = ", ".join("?" * len(table.columns))
    is_sizes = [column.kind == SIZES for column in table.columns]
    database.executemany(
        f"INSERT INTO tensors VALUES ({marks})",
        (
            [
                json.dumps(value) if sizes and value is not None else value
                for value, sizes in zip(row, is_sizes, strict=True)
            ]
            for row in zip(*table.values, strict=True)
        ),
    )
    database.execute("CREATE INDEX tensors_by_step ON tensors (rank, graph, iteration, operator)")
    database.execute("CREATE INDEX tensors_by_health ON tensors (health)")
    database.execute(_OPERATORS)
    database.execute("CREATE TABLE damaged (file TEXT, problem TEXT)")
    problems = table_of(_PROBLEM_COLUMNS, [(file, str(error)) for file, error in contents.damaged])
    database.executemany("INSERT INTO damaged VALUES (?, ?)", zip(*problems.values, strict=True))
    database.execute("CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT)")
    database.executemany("INSERT INTO about VALUES (?, ?)", _about(contents))
    database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


_PROBLEM_COLUMNS = (Column("file", TEXT, ""), Column("problem", TEXT, ""))


def _about(contents: Contents) -> list[tuple[Any, ...]]:
    golden = None if contents.golden is None else str(contents.golden.path)
    pairs = [("dump", str(contents.dump.path)), ("golden", golden), ("msdump", __version__)]
    pairs.append(("schema_version", str(SCHEMA_VERSION)))
    return list(zip(*table_of(_PROBLEM_COLUMNS, pairs).values, strict=True))


__all__ = ["COLUMNS", "MORE_COLUMNS", "SCHEMA_VERSION", "export", "fill", "tensor_table"]
