"""Where the time of a dumped step goes: what the physical limits explain, and the rest. Drawn on the page."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.dump_config import statistic_columns
from benchmarks.picture import KINDS, PARTS, ROW
from benchmarks.registry import Bench, Line, Sample, row
from benchmarks.rows.mindspore import alexnet_batch
from benchmarks.timing import BareWriter, scratch, settle, timed
from benchmarks.workers import Worker

_SHOWN = {
    "plain": ("step",),
    "tensors": ("step", "added", "write", "names"),
    "tensors-disk": ("step", "added", "write", "names"),
    "statistics": ("step", "added", "read"),
    "statistics-md5": ("step", "added", "read", "md5"),
}
_LINES = {
    f"{kind}.{part}": Line(f"{KINDS[kind]}: {PARTS[part][0]}", unit="s")
    for kind, parts in _SHOWN.items()
    for part in parts
}


@row(ROW, "Where the time of a dumped step goes", _LINES)
def where_time_goes(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    """AlexNet, batch 32. Each kind of dump has a process; what the limits take of its time is measured in this one."""
    with ExitStack() as stack:
        folders = {kind: stack.enter_context(scratch("disk" if "disk" in kind else "tmpfs")) for kind in KINDS}
        workers = {
            kind: stack.enter_context(Worker("alexnet_dump", folder=str(folders[kind]), **settings))
            for kind, settings in _settings(alexnet_batch(bench)).items()
        }
        writers = {kind: BareWriter(folder) for kind, folder in folders.items()}
        while True:
            seconds: dict[str, Sample] = {}
            distinct = 0
            for kind, worker in workers.items():
                settle()
                dumped, plain, sizes, names = worker.turn()
                distinct = sum(sizes) or distinct
                if sizes:
                    limits = _of_files(folders[kind], writers[kind], sizes, names)
                else:
                    limits = _of_values(distinct, has_digest=kind.endswith("md5"))
                parts = {"step": plain, "added": dumped - plain, **limits}
                seconds |= {f"{kind}.{part}": value for part, value in parts.items()}
                seconds.setdefault("plain.step", plain)
            yield seconds


def _settings(batch: int) -> dict[str, dict[str, Any]]:
    statistic = {"batch": batch, "saved_data": "statistic"}
    return {
        "tensors": {"batch": batch, "saved_data": "tensor"},
        "tensors-disk": {"batch": batch, "saved_data": "tensor"},
        "statistics": {**statistic, "statistic_category": statistic_columns("md5")},
        "statistics-md5": {**statistic, "statistic_category": statistic_columns()},
    }


def _of_files(folder: Path, writer: BareWriter, sizes: Sequence[int], names: int) -> dict[str, float]:
    """Seconds that the same bytes and the same names take without anything else."""
    empty = writer.seconds([1] * len(sizes))
    subfolder = folder / "names"
    subfolder.mkdir()
    (subfolder / "file").touch()

    def link_all() -> None:
        for number in range(names - len(sizes)):
            os.link(subfolder / "file", subfolder / str(number))

    links = timed(link_all)
    shutil.rmtree(subfolder)
    settle()
    return {"write": writer.seconds(sizes) - empty, "names": empty + links}


def _of_values(size: int, has_digest: bool) -> dict[str, float]:
    """Seconds that reading so many bytes once takes, and their digests, on all cores."""
    cores = len(os.sched_getaffinity(0))
    array = np.ones((16 << 20) // 4, np.float32)

    def on_all(work: Callable[[], Any]) -> float:
        with ThreadPoolExecutor(cores) as pool:
            return timed(lambda: list(pool.map(lambda _: work(), range(4 * cores)))) / (4 * cores)

    times = size / array.nbytes
    seconds = {"read": on_all(lambda: np.sum(array)) * times}
    if has_digest:
        seconds["md5"] = on_all(lambda: hashlib.md5(array.data, usedforsecurity=False)) * times
    return seconds
