"""The result_{time}.csv of msaccucmp: one row for each tensor.   Source: CANN, msaccucmp compare.

`msdump compare --csv` and `msaccucmp compare` both write it. What they leave out they have no column for.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

NO_VALUE = "NaN"
# The last four are the wide forms, which spreadsheets set to Chinese or Japanese read alike.
_RISKY = ("=", "+", "-", "@", "%", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


@dataclass(frozen=True, slots=True)
class SideCells:
    """Cells of mine or golden: columns NPUDump or GroundTruth, DataType, Address."""

    name: str
    dtype: str
    address: str


@dataclass(frozen=True, slots=True)
class ResultRow:
    """Cells of one tensor; the numbers are text already.

    tensor_index   operator:io:slot
    shape          None for a row without a tensor
    metrics        cells by metric
    sequence       column OpSequence, where the table has it; overflow: column OverFlow
    """

    number: int
    op_type: str
    mine: SideCells
    golden: SideCells
    tensor_index: str
    shape: Sequence[int] | None
    metrics: Mapping[str, str]
    reason: str
    sequence: int = 0
    overflow: str = NO_VALUE


def result_csv(
    rows: Iterable[ResultRow],
    metrics: Iterable[str],
    has_address: tuple[bool, bool],
    *,
    has_sequence: bool = False,
    has_overflow: bool = False,
    line_end: str = "\n",
) -> str:
    """Text of the table.

    has_address   of mine and golden: a side of npy files has no column Address
    """
    metrics = tuple(metrics)
    titles = ["Index", *(["OpSequence"] if has_sequence else []), "OpType"]
    for name, has in zip(("NPUDump", "GroundTruth"), has_address, strict=True):
        titles += [name, "DataType", *(["Address"] if has else [])]
    titles += ["TensorIndex", "Shape", *(["OverFlow"] if has_overflow else []), *metrics, "CompareFailReason"]
    table = [titles]
    for row in rows:
        cells = [str(row.number), *([str(row.sequence)] if has_sequence else []), safe_cell(row.op_type)]
        for side, has in zip((row.mine, row.golden), has_address, strict=True):
            cells += [safe_cell(side.name), side.dtype, *([side.address] if has else [])]
        shape = NO_VALUE if row.shape is None else "[" + ",".join(map(str, row.shape)) + "]"
        cells += [safe_cell(row.tensor_index), shape, *([row.overflow] if has_overflow else [])]
        table.append([*cells, *(row.metrics[name] for name in metrics), safe_cell(row.reason)])
    return table_csv(table, line_end)


def table_csv(rows: Iterable[Sequence[str]], line_end: str) -> str:
    """Rows of cells as csv."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator=line_end).writerows(rows)
    return stream.getvalue()


def safe_cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_RISKY) else text
