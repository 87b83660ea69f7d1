"""One row for each tensor of a dump, with how it fares; docs/exports.md lists the columns."""

from __future__ import annotations

from msdump.analysis.overview.contents import Contents
from msdump.analysis.stat.rows import statistic_table
from msdump.tables.frames import NUMBER, TEXT, Column, Table, table_of

MORE_COLUMNS = (
    Column("health", TEXT, "how the tensor fares: the worst that is true of it"),
    Column("error", NUMBER, "relative error against the golden dump, where one was given"),
)


def tensor_table(contents: Contents) -> Table:
    """The statistics of all tensors with health and error; columns are `COLUMNS` and `MORE_COLUMNS`.

    Raises: as `Contents`.
    """
    rows, health = contents.statistics.rows, contents.health
    one = statistic_table(rows)
    more = table_of(MORE_COLUMNS, [(health.of(row).value, health.error(row)) for row in rows])
    return Table((*one.columns, *more.columns), (*one.values, *more.values))
