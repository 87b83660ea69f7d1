"""Dump: the result of `msdump.open`, a dump to read and a table of its tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msdump.formats.dump_dir import DumpDir
from msdump.tables.frames import NUMBER, TEXT, Column, Frame, Table, table_of

if TYPE_CHECKING:
    from msdump.analysis.overview.contents import Contents

MORE_COLUMNS = (
    Column("health", TEXT, "how the tensor fares: the worst that is true of it"),
    Column("error", NUMBER, "relative error against the golden dump, where one was given"),
)


class Dump(DumpDir, Frame):
    """A dump that is being read. As a table it has a row for each tensor, in execution order, with the columns of
    docs/exports.md: `to_arrow()`, `to_polars()`, `to_pandas()`, and `sql("select ... from tensors")`.

    The first of these calls measures every tensor; the table is kept.
    """

    _table: Table | None = None

    def table(self) -> Table:
        """Raises: ConfigError when there is nothing to measure."""
        if self._table is None:
            from msdump.analysis.overview.contents import Contents

            self._table = tensor_table(Contents(self))
        return self._table


def tensor_table(contents: Contents) -> Table:
    """The statistics of all tensors with health and error; columns are `COLUMNS` and `MORE_COLUMNS`.

    Raises: as `Contents`.
    """
    from msdump.analysis.stat.rows import statistic_table

    rows, health = contents.statistics.rows, contents.health
    one = statistic_table(rows)
    other = table_of(MORE_COLUMNS, [(health.of(row).value, health.error(row)) for row in rows])
    return Table((*one.columns, *other.columns), (*one.values, *other.values))
