"""Statistics of a dump: one row for each tensor, and all rows as a table.

The columns are those of `msdump stat --parquet`, of `to_arrow` and its like, and of the exports.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar

from msdump.analysis._payload import key_of
from msdump.analysis.graph_info import GraphNode
from msdump.analysis.roles import Role
from msdump.analysis.steps import Operator, StepKey
from msdump.errors import ConfigError, FormatError, WriteError
from msdump.formats.atomic import scratch_folder
from msdump.formats.dump_tensor import DumpedTensor
from msdump.formats.sidecars import Lost
from msdump.formats.statistic_row import StatisticRow
from msdump.statistics.exponents import ExponentHistogram
from msdump.statistics.stats import Statistics
from msdump.tables.frames import (
    FLAG,
    INTEGER,
    NUMBER,
    SIZES,
    TEXT,
    Column,
    Frame,
    Table,
    arrow_table,
    optional_package,
    table_of,
)
from msdump.tensors.makers import maker

# Statistics of a row, and whether they count elements.
_NUMBERS = (
    Column("max", NUMBER, "largest element"),
    Column("min", NUMBER, "smallest element"),
    Column("avg", NUMBER, "mean of the elements"),
    Column("l2norm", NUMBER, "root of the sum of squares"),
    Column("count", INTEGER, "elements"),
    Column("negative", INTEGER, "elements below 0"),
    Column("positive", INTEGER, "elements above 0"),
    Column("zero", INTEGER, "elements that are 0"),
    Column("nan", INTEGER, "elements that are NaN"),
    Column("negative_inf", INTEGER, "elements that are -Inf"),
    Column("positive_inf", INTEGER, "elements that are +Inf"),
)
COLUMNS = (
    Column("rank", INTEGER, "rank of the process"),
    Column("graph", INTEGER, "number of the graph or model"),
    Column("iteration", INTEGER, "from 0 on"),
    Column("operator", INTEGER, "place of the operator in its step, from 0 on"),
    Column("op_type", TEXT, "type of the operator"),
    Column("op_name", TEXT, "its name as the names of the files have it"),
    Column("full_name", TEXT, "its name with scope"),
    Column("parameter", TEXT, "parameter that the tensor is, or whose gradient it is"),
    Column("layer", TEXT, "modules around the operator"),
    Column("is_gradient", FLAG, "whether the tensor is a gradient"),
    Column("source_path", TEXT, "file of the user's line that made the operator"),
    Column("source_line", INTEGER, "its number, from 1 on"),
    Column("source_code", TEXT, "its text, as the dump holds it"),
    Column("io", TEXT, "input or output"),
    Column("slot", INTEGER, "number of the tensor among them"),
    Column("slot_name", TEXT, "the same with the place in a list, or the keyword"),
    Column("dtype", TEXT, "dtype that the operator's tensor had"),
    Column("shape", SIZES, "sizes of its axes"),
    Column("size_bytes", INTEGER, "bytes of the elements"),
    *_NUMBERS,
    Column("is_unset", FLAG, "memory that no operator has written yet, whose numbers would mean nothing"),
    Column("md5", TEXT, "MD5 of the bytes, where it was asked for"),
)
_numbers_of = attrgetter(*(column.name for column in _NUMBERS))


@dataclass(frozen=True, slots=True)
class TensorStatistics:
    """Statistics of one tensor; those of a statistic.csv have its six digits and lack columns that it lacks.

    shape     of what was measured: that of the host, unless padding and device format were measured as well
    role      parameter, layer, whether it is a gradient
    operator  that reads or writes the tensor; None where a caller makes rows of its own
    number    of that operator in its step, from 0 on, in execution order
    node      what the graph file of the dump says of the operator; None where there is none
    exponents elements by sign and exponent, where they were asked for and there are bytes to count
    is_unset  memory that no operator has written yet: there are no numbers, whatever lies there
    """

    step: StepKey
    tensor: DumpedTensor
    numbers: Statistics | StatisticRow
    md5: str | None
    shape: tuple[int, ...]
    role: Role = field(default_factory=Role)
    operator: Operator | None = None
    number: int = 0
    node: GraphNode | None = None
    exponents: ExponentHistogram | None = None
    is_unset: bool = False

    @property
    def bytes_key(self) -> tuple[object, ...]:
        """Tensors of equal keys are the same bytes on the disk, as hard links are."""
        return key_of(self.tensor)


tensor_statistics_row = maker(TensorStatistics)


@dataclass(frozen=True, slots=True)
class StatisticReport(Frame):
    """Result of `tensor_statistics`; also a table, which pandas and a notebook take as it is.

    rows     of each tensor: its step, its names, dtype and shape, and numbers, in execution order
    damaged  (file, what is wrong) of what could not be measured
    lost     what dumps that are not complete lack, by rank
    """

    _shown: ClassVar[tuple[str, ...]] = (
        *("iteration", "op_type", "op_name", "io", "slot_name", "dtype", "shape"),
        *("max", "min", "avg", "l2norm", "nan", "zero", "parameter"),
    )

    rows: tuple[TensorStatistics, ...]
    damaged: tuple[tuple[str, FormatError], ...]
    lost: Mapping[int, Lost] = field(default_factory=dict)

    def __repr__(self) -> str:
        """One line: how much there is."""
        return f"<{type(self).__name__}: {len(self.rows)} tensors, {len(self.damaged)} damaged files>"

    def table(self) -> Table:
        """One row for each tensor; the columns are those of `msdump stat --parquet`."""
        return statistic_table(self.rows)


def statistic_table(rows: Iterable[TensorStatistics]) -> Table:
    """One row for each tensor, in execution order; columns are `COLUMNS`."""
    return table_of(COLUMNS, [_row(row) for row in rows])


def row_values(row: TensorStatistics) -> dict[str, Any]:
    """Values of one row by the names of `COLUMNS`."""
    return {column.name: value for column, value in zip(COLUMNS, _row(row), strict=True)}


def _row(row: TensorStatistics) -> tuple[Any, ...]:
    tensor, role = row.tensor, row.role
    line = None if row.node is None else row.node.own_line
    return (
        *row.step,
        row.number,
        tensor.op_type,
        tensor.op_name,
        tensor.full_name,
        role.parameter,
        role.layer,
        role.is_gradient,
        *((None, None, None) if line is None else (line.path, line.line, line.code.strip())),
        tensor.io,
        tensor.slot,
        tensor.slot_text,
        tensor.true_dtype,
        row.shape,
        tensor.size_bytes,
        *_numbers_of(row.numbers),
        row.is_unset,
        row.md5,
    )


def write_parquet(report: StatisticReport, path: str | os.PathLike[str]) -> None:
    """Write all rows as one table, with the columns of `StatisticReport.table`.

    Edges:   a file that is there is replaced, as a whole or not at all.
    Raises:  ConfigError when pyarrow is not installed or the file cannot be written.
    """
    write_parquet_table(report.table(), path)


def write_parquet_table(table: Table, path: str | os.PathLike[str]) -> None:
    """The file is there as a whole or not at all.   Raises: as `write_parquet`."""
    parquet = optional_package("pyarrow.parquet", "parquet", "write csv")
    content = arrow_table(table, "parquet")
    target = Path(path)
    try:
        if os.path.lexists(target) and not target.is_file():
            parquet.write_table(content, os.fspath(path))  # a device, which no file may replace
            return
        with scratch_folder(target.parent) as scratch:
            parquet.write_table(content, os.fspath(scratch / target.name))
            os.replace(scratch / target.name, target)
    except (OSError, WriteError) as error:
        raise ConfigError(f"{os.fspath(path)}: expected to write the table, got: {error}.") from error
