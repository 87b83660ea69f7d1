"""Statistics of a dump as steps of operators, where the tensors themselves are not at hand."""

from __future__ import annotations

import csv
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from msdump import dtypes
from msdump.analysis.operators import Step, StepKey, operators_of
from msdump.errors import FormatError
from msdump.formats.dump_dir import DumpDir, OperatorOrder
from msdump.formats.dump_name import DumpName, parse_dump_name
from msdump.formats.dump_place import Place
from msdump.formats.dump_tensor import DumpedFile, DumpedTensor
from msdump.formats.statistic_csv import StatisticRow, read_statistic_csv
from msdump.records import DEFAULT_FORMAT, INPUT, OUTPUT

_STATISTIC = "statistic"
# Names of the dtype table by what ACL calls them.
_DTYPE_BY_ACL_NAME = {f"DT_{name.upper()}": name for name in dtypes.BY_NAME} | {
    "DT_FLOAT": "float32",
    "DT_DOUBLE": "float64",
    "DT_BF16": "bfloat16",
}
_ACL_COLUMNS = {
    "Max Value": "max",
    "Min Value": "min",
    "Avg Value": "avg",
    "l2norm": "l2norm",
    "Count": "count",
    "Nan Count": "nan",
    "Negative Inf Count": "negative_inf",
    "Positive Inf Count": "positive_inf",
}
_COUNTS = ("count", "nan", "negative_inf", "positive_inf")


@dataclass(frozen=True, slots=True)
class StatisticSteps:
    """Steps whose tensors have no bytes, and the row behind each of them."""

    steps: tuple[Step, ...]
    _rows: dict[tuple[str, int], StatisticRow]

    def row(self, tensor: DumpedTensor) -> StatisticRow:
        """The statistics of a tensor of these steps."""
        return self._rows[tensor.path, tensor.offset]


def read_statistic_steps(
    dump: DumpDir,
    *,
    rank: int | Collection[int] | None = None,
    graph: int | Collection[int] | None = None,
    iteration: int | Collection[int] | None = None,
) -> tuple[StatisticSteps, list[tuple[str, FormatError]]]:
    """All statistics of a dump (statistic.csv, or ACL's csv of one operator), and the files that are damaged."""
    rows: dict[tuple[str, int], StatisticRow] = {}
    damaged: list[tuple[str, FormatError]] = []
    tensors: dict[StepKey, list[DumpedTensor]] = {}
    for place, path, is_acl in [
        *((*found, False) for found in dump.statistic_files()),
        *((*found, True) for found in dump.statistic_dump_files()),
    ]:
        key = StepKey(place.rank_id, place.graph_id, place.iteration)
        if not all(_is_wanted(value, wanted) for value, wanted in zip(key, (rank, graph, iteration), strict=True)):
            continue
        try:
            read = _read_acl(path) if is_acl else read_statistic_csv(path)
        except FormatError as error:
            damaged.append((os.fspath(path), error))
            continue
        except OSError as error:
            damaged.append((os.fspath(path), FormatError(f"{path}: expected to read it, got: {error.strerror}.")))
            continue
        order = _order_of(dump, path, place)
        for line, row in enumerate(read):
            rows[os.fspath(path), line] = row
            tensors.setdefault(key, []).append(_tensor(path, place, line, row, order))
    steps = tuple(
        Step(key, operators_of(sorted(found, key=_place_in_order)))
        for key, found in sorted(tensors.items(), key=lambda item: tuple(part or 0 for part in item[0]))
    )
    return StatisticSteps(steps, rows), damaged


def _is_wanted(value: int | None, wanted: int | Collection[int] | None) -> bool:
    if wanted is None:
        return True
    return value == wanted if isinstance(wanted, int) else value in wanted


def _order_of(dump: DumpDir, path: Path, place: Place) -> OperatorOrder:
    if not place.rank_depth or place.graph_id is None:
        return OperatorOrder()
    return dump.order(os.sep.join(os.fspath(path).split(os.sep)[: place.rank_depth]), place.graph_id)


def _tensor(path: Path, place: Place, line: int, row: StatisticRow, order: OperatorOrder) -> DumpedTensor:
    """A tensor without bytes; its `offset` is its row."""
    position = order.find(row.op_name)
    full_name = None if position is None else order.full_names[position]
    name = DumpName(
        _STATISTIC, row.op_type, row.op_name, row.task_id, row.stream_id, row.timestamp_us, row.io, row.slot
    )
    file = DumpedFile(os.fspath(path), place, name, path.name, position, full_name)
    return DumpedTensor(file, row.io, row.slot, row.dtype, row.shape, DEFAULT_FORMAT, line, row.size_bytes, full_name)


def _place_in_order(tensor: DumpedTensor) -> tuple[int, int]:
    last = 1 << 62
    return (last if tensor.position is None else tensor.position, tensor.timestamp_us or 0)


def _read_acl(path: Path) -> list[StatisticRow]:
    """Rows of the csv that ACL writes for one operator; its name is that of the dump file, with `.csv`.

    Raises: FormatError with the line.
    """
    name = parse_dump_name(path.name[:-4])
    if name is None:
        raise FormatError(f"{path}: expected the name of a dump file, got {path.name}.")
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return [_acl_row(path, number, row, name) for number, row in enumerate(csv.DictReader(file), 2)]
    except (csv.Error, UnicodeDecodeError) as error:
        raise FormatError(f"{path}: expected csv, got: {error}.") from error


def _acl_row(path: Path, number: int, row: dict[str, str], name: DumpName) -> StatisticRow:
    try:
        values = {
            field: (int(row[title]) if field in _COUNTS else float(row[title]))
            for title, field in _ACL_COLUMNS.items()
            if row.get(title) not in (None, "", "NA")
        }
        shape = row["Shape"]
        return StatisticRow(
            name.op_type,
            name.op_name,
            name.task_id or 0,
            name.stream_id or 0,
            name.timestamp_us or 0,
            {"Input": INPUT, "Output": OUTPUT}[row["Input/Output"]],
            int(row["Index"]),
            int(row["Data Size"]),
            _DTYPE_BY_ACL_NAME.get(row["Data Type"], row["Data Type"]),
            () if shape in ("-", "NA", "") else tuple(int(size) for size in shape.split("x")),
            **values,  # type: ignore[arg-type]
        )
    except (KeyError, ValueError, TypeError) as error:
        raise FormatError(f"{path}, line {number}: expected the columns of ACL's statistics, got {row}.") from error
