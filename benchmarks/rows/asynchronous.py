"""The asynchronous dump: how long training waits for it, what all of it takes, and what copies take."""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.dump_config import LAST, configure
from benchmarks.mindspore_steps import alexnet_step
from benchmarks.registry import Bench, Line, Sample, row
from benchmarks.rows.mindspore import alexnet_batch
from benchmarks.timing import BareWriter, distinct_sizes, gigabytes, scratch, settle, timed

SECTION = "Asynchronous dump"
# The files of all dumped steps are on tmpfs at a time, and copies of tensors beside them.
ROOM_BYTES = 10 << 30
WARM, DUMPED, PLAIN = 3, 2, 2


def _lines(file_format: str, medium: str) -> dict[str, Line]:
    what = f"{file_format} dump of AlexNet, batch 32, to {medium}"
    return {
        "total": Line(f"{what}: dumped steps and the wait at their end", "the longer of step, write()", "<= 1.1"),
        "added": Line(f"{what}: added time", "bare write() of the same files", "<= 1.0"),
        "memory": Line(f"{what}: added peak memory", "MSDUMP_ASYNC_BUFFER", "<= 1.1"),
    }  # fmt: skip


def _measure(bench: Bench, file_format: str, medium: str) -> Iterator[Mapping[str, Sample]]:
    """A few dumped steps and the wait at their end, as many plain ones, and write() of the same files, in turns."""
    block, pause = DUMPED, PLAIN
    iterations = "|".join(f"{first}-{first + block - 1}" for first in range(WARM, LAST // 4, block + pause))
    with scratch(medium, ROOM_BYTES) as folder:
        configure(folder, iterations, is_sync=False, file_format=file_format)
        step, writer = alexnet_step(alexnet_batch(bench)), BareWriter(folder)
        for _ in range(WARM):
            step()
        from msdump.dumpers.staging import staging_budget
        from msdump.engine import opening

        opened = opening.current()
        if opened is None or opened.pool is None:
            raise RuntimeError("expected an asynchronous dump, got none")
        budget, before, added = staging_budget(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 0
        while True:
            settle()
            began = time.perf_counter()
            for _ in range(block):
                step()
            opened.pool.drain()
            total = (time.perf_counter() - began) / block
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            added = max(added, (peak - before) * 1024 - writer.source_bytes)
            plain = statistics.median(timed(step) for _ in range(pause))
            sizes = distinct_sizes((folder / "dump").rglob("*"))
            _remove_iterations(folder / "dump")
            settle()
            bare = writer.seconds(sizes) / block
            bench.notes["total"] = f"{gigabytes(sizes)} of {block} steps; step {plain:.2f} s, write() {bare:.2f} s"
            yield {
                "total": (total, max(plain, bare)),
                "added": (total, plain, bare),
                "memory": added / budget,
            }


def _remove_iterations(dump: Path) -> None:
    """Folders TIME/DEVICE/MODEL/MODEL ID/ITERATION; those above belong to the dump that goes on."""
    for iteration in list(dump.glob("*/*/*/*/[0-9]*")):
        shutil.rmtree(iteration)


@row("async-bin-disk", SECTION, _lines("bin", "disk"), seconds=180)
def bin_disk(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    return _measure(bench, "bin", "disk")


@row("async-bin-tmpfs", SECTION, _lines("bin", "tmpfs"))
def bin_tmpfs(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    return _measure(bench, "bin", "tmpfs")


@row("async-npy-disk", SECTION, _lines("npy", "disk"), seconds=180)
def npy_disk(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    return _measure(bench, "npy", "disk")


@row("async-npy-tmpfs", SECTION, _lines("npy", "tmpfs"))
def npy_tmpfs(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    return _measure(bench, "npy", "tmpfs")


@row(
    "async-blocked",
    SECTION,
    {"blocked": Line("training thread blocked by a dumped step while the buffer has room", "a plain step", "<= 0.1")},
    environment={"MSDUMP_ASYNC_BUFFER": "6G"},
)
def blocked(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    """One dumped step, with nothing waiting before it, beside the plain ones around it."""
    with scratch(room_bytes=ROOM_BYTES) as folder:
        configure(folder, "|".join(str(number) for number in range(4, LAST, 4)), is_sync=False, file_format="bin")
        step = alexnet_step(alexnet_batch(bench))
        for _ in range(4):
            step()
        from msdump.engine import opening

        opened = opening.current()
        if opened is None or opened.pool is None:
            raise RuntimeError("expected an asynchronous dump, got none")
        bench.notes["blocked"] = f"MSDUMP_ASYNC_BUFFER={os.environ['MSDUMP_ASYNC_BUFFER']}; writers share the cores"
        is_warm = False
        while True:
            dumped = timed(step)
            opened.pool.drain()
            plain = statistics.median(timed(step) for _ in range(3))
            _remove_iterations(folder / "dump")
            if is_warm:
                yield {"blocked": (dumped, plain, plain)}
            is_warm = True
