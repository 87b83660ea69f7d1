"""The csv that stands for the tensors of one operator when `dump_data` is "stats": writer and reader.

One row per input and output. Which columns there are depends on what `dump_stats` asks for: with the six statistics of
the default they stand around the count, with any other choice behind it, always in the same order.

Source: CANN, statistics csv.
"""

from __future__ import annotations

import csv
import functools
import io
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from msdump.errors import DtypeError, FormatError
from msdump.formats.direct import Buffer
from msdump.formats.paths.acl import BinFileName, parse_stats_file_name, stats_file_name
from msdump.formats.statistic_row import StatisticForm, StatisticRow
from msdump.formats.writer import OpenFolder, OperatorFileWriter
from msdump.statistics.stats import STATISTIC_CATEGORIES, Statistics, statistics
from msdump.storage.files import read_file
from msdump.storage.plain import GRAPH_BYTES
from msdump.tensors import device_layouts, dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.packing import packed_size
from msdump.tensors.records import INPUT, OUTPUT, AlreadyWritten, TensorRecord

# In the order of their columns.
TITLE_BY_STATISTIC = {
    statistic_category.acl_name: statistic_category.acl_title
    for statistic_category in STATISTIC_CATEGORIES
    if statistic_category.acl_name and statistic_category.acl_title
}
DEFAULT_STATISTICS = tuple(TITLE_BY_STATISTIC)[:-1]
IDENTITY_TITLES = ("Input/Output", "Index", "Data Size", "Data Type", "Format", "Shape")
_COUNT = "Count"
_CATEGORY_BY_TITLE = {
    statistic_category.acl_title: statistic_category
    for statistic_category in STATISTIC_CATEGORIES
    if statistic_category.acl_title
}
_TITLE_BY_FIELD = {category.attribute: title for title, category in _CATEGORY_BY_TITLE.items()}
_NOT_AVAILABLE, _NO_DIMENSIONS = "NA", "-"
_MOST_DIMENSIONS = 25
_IO_NAMES = {INPUT: "Input", OUTPUT: "Output"}

# Identity of a record -> its cells by title.
Known = AlreadyWritten[dict[str, str]]

# The mean is that of all elements.
_FORM = StatisticForm(
    measured=dtypes.MINDSPORE_DUMPED,
    counted=frozenset(row.name for row in dtypes.TABLE if row.is_float and 16 <= row.bits <= 32),
    finite_by=("avg", "l2norm"),
    titles=_TITLE_BY_FIELD,
)

# What ACL calls the dtypes of the table.
ACL_DTYPE_NAME = {row.name: row.ge_name for row in dtypes.TABLE}
_DTYPE_BY_ACL_NAME = {text: name for name, text in ACL_DTYPE_NAME.items()}


@functools.cache
def stats_titles(chosen: tuple[str, ...]) -> tuple[str, ...]:
    """Columns for these names of `dump_stats`, in any order."""
    if set(chosen) == set(DEFAULT_STATISTICS):
        values, counts = DEFAULT_STATISTICS[:3], DEFAULT_STATISTICS[3:]
        return (
            *IDENTITY_TITLES,
            *(TITLE_BY_STATISTIC[name] for name in values),
            _COUNT,
            *(TITLE_BY_STATISTIC[name] for name in counts),
        )
    titles = (title for name, title in TITLE_BY_STATISTIC.items() if name in chosen)
    return (*IDENTITY_TITLES, _COUNT, *titles)


# -- writer --------------------------------------------------------------------------------------------------------


class AclStatsWriter(OperatorFileWriter):
    """Writer of one csv per operator.

    chosen   names of `dump_stats`

    A tensor that several operators of an iteration share, known by its key, is measured once; a constant once and for
    all iterations.
    """

    takes_empty = True

    def __init__(
        self,
        directory: Callable[[TensorRecord], Path],
        chosen: Sequence[str] = DEFAULT_STATISTICS,
        mode: int = 0o400,
        open_folder: OpenFolder | None = None,
    ) -> None:
        super().__init__(directory, mode, open_folder=open_folder)
        self._chosen = tuple(chosen)
        self._known: dict[tuple[int, int], Known] = {}
        self._constants: dict[int, Known] = {}

    def file_name(self, record: TensorRecord) -> str:
        return stats_file_name(record)

    def content(self, records: Sequence[TensorRecord]) -> list[Buffer]:
        first = records[0]
        known = self._known.setdefault((first.graph_id, first.iteration), AlreadyWritten())
        # Most graphs of single operators have none.
        has_constants = any(record.is_constant for record in records)
        constants = self._constants.setdefault(first.graph_id, AlreadyWritten()) if has_constants else AlreadyWritten()
        return [stats_text(records, self._chosen, known, constants).encode()]

    def end_iteration(self, graph_id: int, iteration: int) -> None:
        self._known.pop((graph_id, iteration), None)
        super().end_iteration(graph_id, iteration)


def stats_text(
    records: Sequence[TensorRecord],
    chosen: Sequence[str],
    known: Known | None = None,
    constants: Known | None = None,
) -> str:
    """The csv of one operator, inputs first; a line ends with a line feed.

    known      cells of tensors of the same iteration and graph, by their identity; grows
    constants  the same for constants of the graph, in all iterations
    Dtypes:  all that arrays have; those without order, packed and 8-bit ones have no numbers but the count.
    Edges:   NaN and Inf are counted for float16, bfloat16 and float32 alone; other cells are NA.
    Raises:  DtypeError for strings, or when an array is not of its record's dtype.
    """
    titles = stats_titles(tuple(chosen))
    ordered = sorted(records, key=lambda record: (record.io == OUTPUT, record.slot))
    known, constants = known or AlreadyWritten(), constants or AlreadyWritten()
    lines = [",".join(titles)]
    lines += [_line(record, titles, constants if record.is_constant else known) for record in ordered]
    return "\n".join(lines) + "\n"


def _line(record: TensorRecord, titles: Sequence[str], known: Known) -> str:
    row, shape = dtypes.dtype(record.dtype), record.shape
    if record.data.dtype.newbyteorder("=") != row.numpy:
        raise DtypeError(f"stats: expected an array of {row.name}, got one of {record.data.dtype}.")
    cells = {
        "Input/Output": _IO_NAMES[record.io],
        "Index": str(record.slot),
        "Data Size": str(packed_size(row.name, math.prod(shape))),
        "Data Type": ACL_DTYPE_NAME[row.name],
        "Format": _format_name(record),
        "Shape": _shape_text(shape),
        _COUNT: str(record.data.size),
    }
    if row.name in _FORM.measured:
        cells.update(_measured_once(record, known))
    return ",".join(cells.get(title, _NOT_AVAILABLE) for title in titles)


def _measured_once(record: TensorRecord, known: Known) -> dict[str, str]:
    cells = known.get(record)
    if cells is None:
        cells = _measured(record)
        known.put(record, cells)
    return cells


def _measured(record: TensorRecord) -> dict[str, str]:
    """Cells of the statistics that this dtype has; of an empty tensor only counts."""
    numbers = statistics(record.data, record.dtype)
    texts = {"l2norm": format_value(numbers.l2norm)}
    if record.data.size:
        top, low, average = _extremes_and_average(record.data, numbers)
        texts |= {"max": format_value(top), "min": format_value(low), "avg": format_value(average)}
    if record.dtype in _FORM.counted:
        texts |= {field: str(getattr(numbers, field)) for field in ("nan", "negative_inf", "positive_inf")}
    return {_TITLE_BY_FIELD[field]: text for field, text in texts.items()}


def _extremes_and_average(array: Array, numbers: Statistics) -> tuple[float, float, float]:
    """Max, min and average as ACL defines them.

    Both extremes start as the first element and change only for a larger or smaller one: Inf takes part, NaN wins only
    where it comes first. The average is that of all elements: NaN with any NaN and with Inf of both signs.
    """
    top, low, average = numbers.max, numbers.min, numbers.avg
    if numbers.positive_inf:
        top = math.inf
        low = math.inf if low is None else low
    if numbers.negative_inf:
        low = -math.inf
        top = -math.inf if top is None else top
    # With NaN alone, the first NaN counts as well.
    if numbers.nan and math.isnan(float(array.flat[0])):
        top = low = math.nan
    if numbers.nan or (numbers.positive_inf and numbers.negative_inf):
        average = math.nan
    elif numbers.positive_inf or numbers.negative_inf:
        average = math.inf if numbers.positive_inf else -math.inf
    assert top is not None and low is not None and average is not None
    return top, low, average


def format_value(value: float | int) -> str:
    """As C++ streams print: whole numbers in full, others with six significant digits."""
    return str(int(value)) if isinstance(value, (int, np.integer)) else f"{float(value):g}"


def _format_name(record: TensorRecord) -> str:
    """Host's format: the data are in the host's order, not in a device format."""
    is_known = record.format in device_layouts.FORMAT_NUMBER and record.format not in device_layouts.DEVICE_FORMATS
    return record.format if is_known else device_layouts.host_format(record.shape)


def _shape_text(shape: Sequence[int]) -> str:
    if len(shape) > _MOST_DIMENSIONS:
        return _NOT_AVAILABLE
    return "x".join(map(str, shape)) or _NO_DIMENSIONS


# -- reader --------------------------------------------------------------------------------------------------------

_ABSENT = (None, "", _NOT_AVAILABLE)


def read_acl_stats(path: str | os.PathLike[str], name: str | None = None) -> list[StatisticRow]:
    """Rows of an operator's csv, in any choice of columns; None for what a cell does not tell.

    name   of the file, where digits stand for it
    Edges:   an unknown shape is (); an unknown dtype keeps ACL's name.
    Raises:  FormatError with the line; OSError when the file cannot be opened.
    """
    path = Path(path)
    identity = parse_stats_file_name(name or path.name)
    if identity is None:
        raise FormatError(f"{path}: expected the name of a dump file with .csv behind it, got {name or path.name}.")
    try:
        text = io.StringIO(read_file(path, GRAPH_BYTES).decode(), newline="")
        return [_row(path, number, row, identity) for number, row in enumerate(csv.DictReader(text), 2)]
    except (csv.Error, UnicodeDecodeError) as error:
        raise FormatError(f"{path}: expected csv, got: {error}.") from error


def _row(path: Path, number: int, row: dict[str, str], identity: BinFileName) -> StatisticRow:
    try:
        values = {
            category.attribute: (int(row[title]) if category.is_count else float(row[title]))
            for title, category in _CATEGORY_BY_TITLE.items()
            if row.get(title) not in _ABSENT
        }
        shape = row["Shape"]
        return StatisticRow(
            identity.op_type,
            identity.op_name,
            identity.task_id,
            identity.stream_id or 0,
            identity.timestamp_us,
            {text: io for io, text in _IO_NAMES.items()}[row["Input/Output"]],
            int(row["Index"]),
            int(row["Data Size"]),
            _DTYPE_BY_ACL_NAME.get(row["Data Type"], row["Data Type"]),
            () if shape in (_NO_DIMENSIONS, *_ABSENT) else tuple(int(size) for size in shape.split("x")),
            form=_FORM,
            **values,  # type: ignore[arg-type]
        )
    except (KeyError, ValueError, TypeError) as error:
        raise FormatError(f"{path}, line {number}: expected the columns of ACL's statistics, got {row}.") from error
