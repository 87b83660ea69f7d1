"""What the machine allows: memory, files, digests. Other rows are read against these."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from benchmarks.registry import Bench, Line, Sample, row
from benchmarks.timing import MEDIA, BareWriter, scratch, settle, timed

SECTION = "Limits of the machine"


@row(
    "limits-memory",
    SECTION,
    {
        "read": Line("np.sum of 64 MiB of float32, one core", unit="GB/s"),
        "read-all": Line("the same by all cores, parts of one array", unit="GB/s"),
        "copy": Line("np.copyto of 64 MiB", unit="GB/s"),
        "fresh": Line("the same into pages that are new", unit="GB/s"),
        "md5": Line("MD5 of hashlib, one core", unit="GB/s"),
    },
)
def memory(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    size = 64 << 20
    array = np.random.default_rng(0).standard_normal(size // 4).astype(np.float32)
    target, block = np.ones_like(array), array[: size // 32]

    def fresh() -> None:
        np.copyto(np.empty(2 * array.size, np.float32)[: array.size], array)

    parts = np.array_split(array, len(os.sched_getaffinity(0)))
    pool = ThreadPoolExecutor(len(parts))

    def read_all() -> None:
        list(pool.map(np.sum, parts))

    calls = {
        "read": lambda: np.sum(array),
        "read-all": read_all,
        "copy": lambda: np.copyto(target, array),
        "fresh": fresh,
    }
    for call in calls.values():
        call()
    while True:
        rates = {key: size / min(timed(call) for _ in range(3)) / 1e9 for key, call in calls.items()}
        yield {**rates, "md5": block.nbytes / timed(lambda: hashlib.md5(block.data, usedforsecurity=False)) / 1e9}


@row(
    "limits-files",
    SECTION,
    {
        **{f"{medium}-write": Line(f"write() of 1 GiB as files of 8 MiB, {medium}", unit="GB/s") for medium in MEDIA},
        **{
            f"{medium}-create": Line(f"create, write 256 bytes, close: a file, {medium}", unit="µs") for medium in MEDIA
        },
        "whole": Line("the same without a name, which it gets when it is whole, tmpfs", unit="µs"),
        **{f"{medium}-link": Line(f"a hard link, {medium}", unit="µs") for medium in MEDIA},
    },
)
def files(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    blocks, count = ([8 << 20] * (16 if bench.is_quick else 128)), 2000
    with ExitStack() as stack:
        folders = {medium: stack.enter_context(scratch(medium)) for medium in MEDIA}
        writers = {medium: BareWriter(folder) for medium, folder in folders.items()}
        while True:
            rates: dict[str, Sample] = {}
            for medium, folder in folders.items():
                rates[f"{medium}-write"] = sum(blocks) / writers[medium].seconds(blocks) / 1e9
                rates[f"{medium}-create"] = writers[medium].seconds([256] * count) / count * 1e6
                rates[f"{medium}-link"] = _links(folder, count) / count * 1e6
                settle()
            rates["whole"] = _whole_files(folders["tmpfs"], count) / count * 1e6
            yield rates


def _links(folder: Path, count: int) -> float:
    subfolder = folder / "links"
    subfolder.mkdir()
    (subfolder / "file").write_bytes(b"x")
    names = [str(subfolder / str(number)) for number in range(count)]

    def link_all() -> None:
        for name in names:
            os.link(subfolder / "file", name)

    seconds = timed(link_all)
    shutil.rmtree(subfolder)
    return seconds


def _whole_files(folder: Path, count: int) -> float:
    """Files that are there as a whole or not at all."""
    subfolder = folder / "whole"
    subfolder.mkdir()
    handle, data = os.open(subfolder, os.O_RDONLY | os.O_DIRECTORY), bytes(256)

    def write_all() -> None:
        for number in range(count):
            unnamed = os.open(".", os.O_TMPFILE | os.O_WRONLY, 0o600, dir_fd=handle)
            os.write(unnamed, data)
            os.link(f"/proc/self/fd/{unnamed}", str(number), dst_dir_fd=handle, follow_symlinks=True)
            os.close(unnamed)

    seconds = timed(write_all)
    os.close(handle)
    shutil.rmtree(subfolder)
    return seconds
