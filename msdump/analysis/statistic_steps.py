"""Statistics of a dump as steps of operators, where the tensors themselves are not at hand."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from msdump.analysis.operators import Step, StepKey, operators_of
from msdump.analysis.selection import is_selected
from msdump.errors import FormatError
from msdump.formats.acl_stats_csv import read_acl_stats
from msdump.formats.dump_dir import DumpDir, Folder, OperatorOrder
from msdump.formats.dump_tensor import DumpedFile, DumpedTensor
from msdump.formats.paths.parse import DumpName, Place
from msdump.formats.statistic_csv import StatisticRow, read_statistic_csv
from msdump.records import DEFAULT_FORMAT

STATISTIC = "statistic"  # form of the file of a tensor without bytes


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
    readers: list[tuple[Place, Path, Callable[[], list[StatisticRow]]]] = [
        *((place, path, partial(read_statistic_csv, path)) for place, path in dump.statistic_files()),
        *((place, path, partial(read_acl_stats, path, name)) for place, path, name in dump.statistic_dump_files()),
    ]
    for place, path, reader in readers:
        key = StepKey(place.rank_id, place.graph_id, place.iteration)
        if not all(is_selected(value, numbers) for value, numbers in zip(key, (rank, graph, iteration), strict=True)):
            continue
        try:
            read = reader()
        except FormatError as error:
            damaged.append((os.fspath(path), error))
            continue
        except OSError as error:
            damaged.append((os.fspath(path), FormatError(f"{path}: expected to read it, got: {error.strerror}.")))
            continue
        order = dump.order_in(Folder(os.fspath(path.parent), place, (path.name,)))
        for line, row in enumerate(read):
            rows[os.fspath(path), line] = row
            tensors.setdefault(key, []).append(_tensor(path, place, line, row, order))
    steps = tuple(
        Step(key, operators_of(sorted(found, key=_place_in_order)))
        for key, found in sorted(tensors.items(), key=lambda item: tuple(part or 0 for part in item[0]))
    )
    return StatisticSteps(steps, rows), damaged


def _tensor(path: Path, place: Place, line: int, row: StatisticRow, order: OperatorOrder) -> DumpedTensor:
    """A tensor without bytes; its `offset` is its row."""
    position = order.find(row.op_name)
    full_name = None if position is None else order.full_names[position]
    name = DumpName(STATISTIC, row.op_type, row.op_name, row.task_id, row.stream_id, row.timestamp_us, row.io, row.slot)
    file = DumpedFile(os.fspath(path), place, name, path.name, position, full_name)
    return DumpedTensor(file, row.io, row.slot, row.dtype, row.shape, DEFAULT_FORMAT, line, row.size_bytes, full_name)


def _place_in_order(tensor: DumpedTensor) -> tuple[int, int]:
    last = 1 << 62
    return (last if tensor.position is None else tensor.position, tensor.timestamp_us or 0)
