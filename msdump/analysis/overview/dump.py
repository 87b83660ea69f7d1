"""Dump: the result of `msdump.open`, a dump to read and a table of its tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msdump.formats.dump_dir import DumpDir
from msdump.tables.frames import Frame

if TYPE_CHECKING:
    from msdump.tables.frames import Table


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
            from msdump.analysis.overview.table import tensor_table

            self._table = tensor_table(Contents(self))
        return self._table
