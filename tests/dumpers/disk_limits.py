"""Disks of any size, and dumps that keep within the limits of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from msdump.config.environment import DiskLimits
from msdump.dumpers.limits import (
    NPY_FOOTPRINT,
    STATISTIC_FOOTPRINT,
    DiskGuard,
    DiskUsage,
    LimitedWriter,
)
from msdump.dumpers.streaming import AsyncDumper
from msdump.dumpers.sync import SyncDumper
from msdump.dumpers.tally import Tally
from msdump.formats.npy import NpyWriter
from msdump.formats.npy_reader import read_npy
from msdump.formats.paths.sync import SyncPaths, parse_data_file_name
from msdump.formats.statistic_csv import StatisticWriter
from msdump.formats.writer import Writer
from msdump.graph.run import Observer
from msdump.mindspore.program.executor import Executor
from msdump.mindspore.program.graph_cases import GraphCase
from msdump.tensors.records import TensorRecord
from tests.dumpers.memory_writer import MemoryWriter
from tests.plans import plain_plan

GB = 1 << 30


@dataclass
class Disk:
    """A disk of any size, for guards."""

    total: int = 100 * GB
    free: int = 50 * GB

    def __call__(self, path: Path) -> DiskUsage:
        return self


def by_iteration(root: Path) -> Callable[[TensorRecord], Path]:
    return lambda record: root / "Net" / str(record.graph_id) / str(record.iteration)


def open_guard(root: Path, disk: Disk | None = None, **limits: int) -> DiskGuard:
    return DiskGuard(root, DiskLimits(**limits), disk or Disk())


def limited(root: Path, guard: DiskGuard) -> list[Writer]:
    folder = by_iteration(root)
    return [
        LimitedWriter(NpyWriter(folder), guard, NPY_FOOTPRINT, folder),
        LimitedWriter(StatisticWriter(folder), guard, STATISTIC_FOOTPRINT, folder),
    ]


def disk_bytes(root: Path) -> int:
    """Every file once, whatever the number of its names."""
    return sum({path.stat().st_ino: path.stat().st_size for path in root.rglob("*") if path.is_file()}.values())


def sync_dumper(root: Path, writers: Sequence[Writer], tally: Tally) -> Observer:
    paths = SyncPaths(root.parent / "graphs", 0, "Net")
    return SyncDumper(plain_plan(engine="sync"), paths, writers, MemoryWriter(), tally)


def async_dumper(writers: Sequence[Writer], tally: Tally, threads: int) -> Observer:
    return AsyncDumper(plain_plan(), writers, tally, 1 << 20, threads)


def run(case: GraphCase, dumper: Observer, iterations: int) -> list[bytes]:
    case.restore()
    results: list[bytes] = []
    with np.errstate(all="ignore"):
        executor = Executor(case.graph, (dumper,))
        for iteration in range(iterations):
            results += [array.tobytes() for array in executor.run(case.inputs, iteration)]
    dumper.close()
    return results


def plain(case: GraphCase, iterations: int) -> list[bytes]:
    case.restore()
    with np.errstate(all="ignore"):
        executor = Executor(case.graph)
        return [array.tobytes() for number in range(iterations) for array in executor.run(case.inputs, number)]


def tensors(folder: Path) -> dict[tuple[str, str, int], bytes]:
    found: dict[tuple[str, str, int], bytes] = {}
    for path in folder.glob("*.npy"):
        name = parse_data_file_name(path.name)
        assert name is not None
        found[name.op_name, name.io, name.slot] = read_npy(path).tobytes()
    return found
