"""Whole dump trees for tests: making them, and telling whether two of them say the same."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

from msdump.formats.npy import NpyWriter
from msdump.formats.paths.sync import (
    CONSTANTS,
    DATA,
    MAPPING_FILE,
    STATISTIC_FILE,
    SyncPaths,
    parse_data_file_name,
    parse_sync_path,
)
from msdump.formats.sidecars import ORDER_TITLE, append_history, read_mapping, write_metadata, write_order
from msdump.formats.statistic_csv import StatisticWriter, read_statistic_csv
from msdump.tensors.records import TensorRecord
from msdump.testing.strategies import records

_CONFIG_TEXT = b'{"common_dump_settings": {"net_name": "Net"}, "e2e_dump_settings": {"enable": true}}\n'


@dataclass(frozen=True)
class DumpTree:
    """A dump that is not on disk yet: `write_dump` puts it there.

    net_name              of the folder of the graph
    records_by_iteration  records of each dumped iteration of graph 0
    full_names            operators in execution order
    """

    net_name: str
    records_by_iteration: dict[int, list[TensorRecord]]
    full_names: tuple[str, ...]

    @property
    def records(self) -> list[TensorRecord]:
        return [record for step in self.records_by_iteration.values() for record in step]


@st.composite
def dump_trees(draw: st.DrawFn, dtypes: Sequence[str] | None = None, is_hostile: bool = False) -> DumpTree:
    """Small synchronous dumps: some iterations, some operators and parameters, shared tensors.

    Write them with `write_dump(tree, folder)`, each example into a folder of its own.
    """
    steps: dict[int, list[TensorRecord]] = {}
    timestamp_us = 1_700_000_000_000_000
    for iteration in draw(st.lists(st.integers(0, 20), min_size=1, max_size=3, unique=True).map(sorted)):
        steps[iteration] = draw(
            records(dtypes, is_hostile, iteration=iteration, first_timestamp_us=timestamp_us, max_size=5)
        )
        timestamp_us += 1000
    names = [f"Default/ReLU-op{index}" for index in range(draw(st.integers(0, 3)))]
    return DumpTree(draw(st.sampled_from(["Net", "AlexNet", "a-b_c"])), steps, tuple(names))


def write_dump(tree: DumpTree, root: str | os.PathLike[str], rank_id: int = 0) -> Path:
    """Put a tree on disk with msdump's own writers: tensors, statistics, metadata, execution order.

    Returns the root.
    """
    paths = SyncPaths(root, rank_id, tree.net_name)
    write_metadata(paths.metadata_dir, _CONFIG_TEXT, "CPU", "2.0.0")
    write_order(paths.order_file(0), "".join(f"{line}\n" for line in (ORDER_TITLE, *tree.full_names)))

    def directory(record: TensorRecord) -> Path:
        return paths.data_dir(record.graph_id, record.iteration)

    npy, statistics = NpyWriter(directory), StatisticWriter(directory)
    for iteration, step in tree.records_by_iteration.items():
        npy.write(step)
        statistics.write(step)
        append_history(paths.history_file(0), iteration)
    npy.close()
    statistics.close()
    return Path(root)


def assert_same_dump(left: str | os.PathLike[str], right: str | os.PathLike[str]) -> None:
    """Two dump roots hold the same folders, names, modes and bytes; time stamps do not count.

    Works for dumps of any size: files are compared one after the other. Shortened names are compared by the names they
    stand for.
    Raises: AssertionError that names the first difference.
    """
    left_files, right_files = _files(Path(left)), _files(Path(right))
    for name in [*left_files, *right_files]:
        if name not in right_files:
            raise AssertionError(f"{name}: expected in both dumps, got only {left}.")
        if name not in left_files:
            raise AssertionError(f"{name}: expected in both dumps, got only {right}.")
    for name, left_path in left_files.items():
        right_path = right_files[name]
        modes = [stat.S_IMODE(os.lstat(path).st_mode) for path in (left_path, right_path)]
        if modes[0] != modes[1]:
            raise AssertionError(f"{name}: expected the same mode, got {modes[0]:04o} and {modes[1]:04o}.")
        if left_path.is_dir() or left_path.name == MAPPING_FILE:
            continue
        _assert_same_file(name, left_path, right_path)


def _assert_same_file(name: str, left: Path, right: Path) -> None:
    if left.name == STATISTIC_FILE:
        left_rows, right_rows = _rows(left), _rows(right)
        for number, (left_row, right_row) in enumerate(zip(left_rows, right_rows), 2):  # noqa: B905
            if left_row != right_row:
                raise AssertionError(f"{name}, line {number}: expected equal rows, got {left_row} and {right_row}.")
        if len(left_rows) != len(right_rows):
            raise AssertionError(f"{name}: expected equal lengths, got {len(left_rows)} and {len(right_rows)} rows.")
        return
    left_bytes, right_bytes = left.read_bytes(), right.read_bytes()
    if left_bytes == right_bytes:
        return
    if len(left_bytes) != len(right_bytes):
        raise AssertionError(f"{name}: expected equal sizes, got {len(left_bytes)} and {len(right_bytes)} bytes.")
    offset = next(index for index, pair in enumerate(zip(left_bytes, right_bytes, strict=True)) if pair[0] != pair[1])
    values = f"{left_bytes[offset]:#04x} and {right_bytes[offset]:#04x}"
    raise AssertionError(f"{name}: expected equal bytes, got {values} at offset {offset}.")


def _rows(path: Path) -> list[tuple[object, ...]]:
    """Rows of a statistic.csv without their time stamps."""
    return [
        tuple(getattr(row, field) for field in row.__dataclass_fields__ if field != "timestamp_us")
        for row in read_statistic_csv(path)
    ]


def _files(root: Path) -> dict[str, Path]:
    """Everything below the root by a name without time stamps; files that then share a name are numbered in time."""
    entries: list[tuple[str, int, Path]] = []
    for folder, folders, files in os.walk(root):
        mapping_path = Path(folder, MAPPING_FILE)
        mapping = read_mapping(mapping_path) if MAPPING_FILE in files else {}
        relative = Path(folder).relative_to(root).as_posix()
        entries += [(f"{relative}/{name}/", 0, Path(folder, name)) for name in folders]
        for file_name in files:
            name, timestamp_us = _timeless(f"{relative}/{mapping.get(file_name, file_name)}")
            entries.append((name, timestamp_us, Path(folder, file_name)))
    by_name: dict[str, Path] = {}
    for name, _, path in sorted(entries):
        twins = 2
        unique = name
        while unique in by_name:
            unique, twins = f"{name} ({twins})", twins + 1
        by_name[unique] = path
    return by_name


def _timeless(path: str) -> tuple[str, int]:
    """Path with `*` for the time stamp of a data file, and the time stamp."""
    folder, _, file_name = path.rpartition("/")
    parsed = parse_sync_path(path.removeprefix("./"))
    data = parse_data_file_name(file_name)
    if data is None or (parsed is not None and parsed.kind not in (DATA, CONSTANTS)):
        return path, 0
    dtype = "" if data.dtype is None else f".{data.dtype}"
    timeless = (
        f"{data.op_type}.{data.op_name}.{data.task_id}.{data.stream_id}.*.{data.io}.{data.slot}.{data.format}{dtype}"
    )
    return f"{folder}/{timeless}.{data.suffix}", data.timestamp_us
