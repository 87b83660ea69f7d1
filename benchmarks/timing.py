"""Timing that all rows share: calls in turns, bare writes, folders that go away again."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.registry import NotMeasurableError

TMPFS = "/dev/shm"
# Word in the names of a process's folders, by which the process that started it finds what a killed one left.
TAG = "MSDUMP_BENCHMARK"
# Of memory, without which nothing is written to tmpfs: a full machine ends programs that have nothing to do with it.
ROOM_BYTES = 6 << 30
# None: wherever temporary files go.
MEDIA: dict[str, str | None] = {"tmpfs": TMPFS, "disk": None}


def timed(call: Callable[[], Any]) -> float:
    """Seconds of one call."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def in_turns(*calls: Callable[[], Any], warm: int = 1, times: int = 1) -> Iterator[list[float]]:
    """Seconds of each call, round after round, without end.

    Calls take turns so that a slow moment of the machine hits all of them, and each second round begins with the last
    one: a call meets the caches as the call before left them.

    warm   rounds that are not counted
    times  calls in a row, of which the seconds are the mean
    """
    order = list(range(len(calls)))
    while True:
        seconds = [0.0] * len(calls)
        for index in order:
            started = time.perf_counter()
            for _ in range(times):
                calls[index]()
            seconds[index] = (time.perf_counter() - started) / times
        order.reverse()
        if warm > 0:
            warm -= 1
        else:
            yield seconds


@contextmanager
def scratch(medium: str = "tmpfs", room_bytes: int = ROOM_BYTES) -> Iterator[Path]:
    """A folder on tmpfs or disk for as long as the block lasts.   Raises: NotMeasurableError without room."""
    if medium == "tmpfs" and available_memory() < room_bytes:
        raise NotMeasurableError(f"needs {room_bytes >> 30} GiB of free memory")
    folder = Path(tempfile.mkdtemp(prefix=f"msdump-bench-{os.environ.get(TAG, 'x')}-", dir=MEDIA[medium]))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def available_memory() -> int:
    """Bytes that programs may still take; files on tmpfs count as taken."""
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))


def sweep(tag: str) -> None:
    """Remove the folders of processes that ran with this tag."""
    for medium in MEDIA.values():
        for folder in Path(medium or tempfile.gettempdir()).glob(f"msdump-bench-{tag}-*"):
            shutil.rmtree(folder, ignore_errors=True)


def distinct_sizes(files: Iterable[Path]) -> list[int]:
    """Sizes of files, each file once however many names it has; folders do not count."""
    states = [path.stat() for path in files if path.is_file()]
    return list({state.st_ino: state.st_size for state in states}.values())


class BareWriter:
    """Plain write() of blocks of given sizes from warm memory, one new file each: the least that a dump must do."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "bare"
        self._source = np.empty(0, np.uint8)

    @property
    def source_bytes(self) -> int:
        """What it holds of this process's memory."""
        return int(self._source.nbytes)

    def seconds(self, sizes: Sequence[int]) -> float:
        """Of writing; the files are gone afterwards."""
        if self._source.size < max(sizes):
            self._source = np.ones(max(sizes), np.uint8)
        self._folder.mkdir()
        started = time.perf_counter()
        for number, size in enumerate(sizes):
            handle = os.open(self._folder / str(number), os.O_CREAT | os.O_WRONLY, 0o600)
            view = memoryview(self._source)[:size]
            while view:
                view = view[os.write(handle, view) :]
            os.close(handle)
        seconds = time.perf_counter() - started
        shutil.rmtree(self._folder)
        return seconds


def settle() -> None:
    """Let what was written reach the disk, so that nobody pays for what somebody else left."""
    os.sync()


def gigabytes(sizes: Sequence[int]) -> str:
    """ "1.56 GB in 74 files"."""
    total = sum(sizes)
    size = f"{total / 1e9:.2f} GB" if total >= 1e9 else f"{total / 1e6:.3g} MB"
    return f"{size} in {len(sizes):,} files"
