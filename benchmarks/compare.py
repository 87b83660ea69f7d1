"""Comparing and measuring dumps, against plain reading of the same bytes: `python benchmarks/compare.py [--quick]`.

Prints its rows as JSON lines, like parts.py, and takes the name of one part. GB/s count the bytes of both dumps.
"""

from __future__ import annotations

import argparse
import os
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from parts import alternate, row, scratch, timed

Array = np.ndarray[Any, np.dtype[Any]]
THREADS = len(os.sched_getaffinity(0))


def write_dump(folder: Path, count: int, largest: int, noise: float) -> int:
    """A synchronous dump of one output per operator, sizes spread evenly over the powers of two; its bytes."""
    from msdump.formats.npy import npy_header

    rng, other = np.random.default_rng(0), np.random.default_rng(1)
    sizes = np.exp(rng.uniform(np.log(1024), np.log(largest), count)).astype(int) // 4
    values = rng.standard_normal(largest // 4).astype(np.float32)
    values += np.float32(noise) * other.standard_normal(values.size).astype(np.float32)
    data = folder / "rank_0/Net/0/0"
    data.mkdir(parents=True)
    total = 0
    for number, size in enumerate(sizes):
        array = values[:size]
        path = data / f"Add.Add-op{number}.0.0.{1_700_000_000_000_000 + number}.output.0.DefaultFormat.npy"
        with path.open("wb") as file:
            total += file.write(npy_header("float32", array.shape)) + file.write(array.data)
    return total


def read_plainly(folders: list[Path]) -> None:
    """Every byte once, into one small buffer per thread: what any tool must do at least."""
    files = sorted(path for folder in folders for path in folder.rglob("*.npy"))

    def work(share: int) -> None:
        buffer = memoryview(bytearray(1 << 20))
        for path in files[share::THREADS]:
            with open(path, "rb", buffering=0) as file:
                while file.readinto(buffer):
                    pass

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))


def usual_numpy(x: Array, y: Array) -> None:
    """Nine metrics as one writes them down."""
    with np.errstate(all="ignore"):
        error, relative = np.abs(x - y), np.where(np.abs(y) > 2.2e-16, np.abs(x / y - 1), 0)
        _ = np.dot(x / np.linalg.norm(x), y / np.linalg.norm(y)), error.max(), relative.sum()
        _ = np.sqrt(np.square(x - y).sum()) / np.sqrt(np.square(y).sum())
        _ = x.mean(dtype=np.float64), x.std(dtype=np.float64), y.mean(dtype=np.float64), y.std(dtype=np.float64)
        _ = error.mean(), np.sqrt(np.square(x - y).mean()), relative.max(), relative.mean()


def part_metrics(quick: bool) -> None:
    from msdump.analysis.compare.metrics import compare_arrays

    size = (4 if quick else 64) << 20
    rng = np.random.default_rng(0)
    y = rng.standard_normal(size // 4).astype(np.float32)
    x = y + np.float32(1e-3) * rng.standard_normal(y.size).astype(np.float32)
    gigabytes = 2 * size / 1e9
    nine, ten, usual = alternate(
        5,
        lambda: compare_arrays(x, y, has_divergence=False, thread_count=THREADS),
        lambda: compare_arrays(x, y, thread_count=THREADS),
        lambda: usual_numpy(x, y),
    )
    row("metrics in memory: nine of them, GB/s", gigabytes / nine, ">= 4", f"{THREADS} threads")
    row("metrics in memory: all ten, GB/s", gigabytes / ten, ">= 1.5", f"{THREADS} threads")
    row("metrics in memory: nine, times as fast", usual / nine, ">= 6", f"usual numpy, {gigabytes / usual:.2f} GB/s")


def measure_dumps(base: str | None, place: str, quick: bool) -> None:
    from msdump.analysis import compare_dumps, find_non_finite, tensor_statistics

    count, largest = (60, 8 << 20) if quick else (200, 64 << 20)
    with scratch(base) as folder:
        mine, golden, copy = folder / "mine", folder / "golden", folder / "copy"
        total = write_dump(mine, count, largest, 1e-3) + write_dump(golden, count, largest, 0)
        shutil.copytree(golden, copy)

        def against_plain(label: str, call: Callable[[], Any], folders: list[Path], share: float, aim: str) -> None:
            done, plain = alternate(3, call, lambda: read_plainly(folders))
            speed = total * share / done / 1e9
            row(f"{label} on {place}: GB/s", speed, aim, f"{total * share / 1e9:.2f} GB, {count} files a dump")
            row(f"{label} on {place}: speed", plain / done, "", "plain reading of the same bytes")

        both = [mine, golden]
        fast = {"has_divergence": False}
        against_plain("compare, nine metrics", lambda: compare_dumps(mine, golden, **fast), both, 1, ">= 4")
        against_plain("compare, all ten", lambda: compare_dumps(mine, golden), both, 1, ">= 1.5")
        against_plain("compare, equal bytes", lambda: compare_dumps(golden, copy), [golden, copy], 1, "")
        against_plain("nan", lambda: find_non_finite(golden), [golden], 0.5, "")
        against_plain("stat", lambda: tensor_statistics(golden), [golden], 0.5, "")
        linked = folder / "linked"
        shutil.copytree(golden, linked, copy_function=os.link)
        same, plain = alternate(3, lambda: compare_dumps(golden, linked), lambda: read_plainly([golden]))
        row(f"compare, the same files on {place}: time", same / plain, "<= 0.5", "plain reading of one dump")


def part_dumps_tmpfs(quick: bool) -> None:
    measure_dumps("/dev/shm", "tmpfs", quick)


def part_dumps_disk(quick: bool) -> None:
    measure_dumps(None, "disk", quick)


def part_first(quick: bool) -> None:
    """The first comparison of a process pays for the compiler's cache."""
    from msdump.analysis.compare.metrics import compare_arrays

    x = np.random.default_rng(0).standard_normal(1 << 20).astype(np.float32)
    first = timed(lambda: compare_arrays(x, x + 1))
    started = time.perf_counter()
    compare_arrays(x, x + 1)
    row("first large comparison of a process: seconds", first, "<= 3", f"then {time.perf_counter() - started:.3f} s")


PARTS = {"metrics": part_metrics, "dumps_tmpfs": part_dumps_tmpfs, "dumps_disk": part_dumps_disk, "first": part_first}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", choices=PARTS, help="one part; all without it")
    parser.add_argument("--quick", action="store_true", help="small files, few repetitions")
    args = parser.parse_args()
    for name in [args.part] if args.part else PARTS:
        PARTS[name](args.quick)


if __name__ == "__main__":
    main()
