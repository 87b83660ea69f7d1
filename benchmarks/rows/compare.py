"""Comparing and measuring dumps, against plain reading of the same bytes. GB/s count the bytes of both dumps."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.dumps import spread_sizes, write_npy_dump
from benchmarks.registry import Bench, Line, Sample, row
from benchmarks.timing import MEDIA, in_turns, scratch, timed

SECTION = "Comparing"
THREADS = len(os.sched_getaffinity(0))
Array = np.ndarray[Any, np.dtype[Any]]


def _read_plainly(folders: list[Path]) -> None:
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


def _usual_numpy(x: Array, y: Array) -> None:
    """Nine metrics as one writes them down."""
    with np.errstate(all="ignore"):
        error, relative = np.abs(x - y), np.where(np.abs(y) > 2.2e-16, np.abs(x / y - 1), 0)
        _ = np.dot(x / np.linalg.norm(x), y / np.linalg.norm(y)), error.max(), relative.sum()
        _ = np.sqrt(np.square(x - y).sum()) / np.sqrt(np.square(y).sum())
        _ = x.mean(dtype=np.float64), x.std(dtype=np.float64), y.mean(dtype=np.float64), y.std(dtype=np.float64)
        _ = error.mean(), np.sqrt(np.square(x - y).mean()), relative.max(), relative.mean()


@row(
    "compare-metrics",
    SECTION,
    {
        "nine": Line("nine metrics of two arrays of 64 MiB in memory", aim=">= 5", unit="GB/s"),
        "ten": Line("all ten", aim=">= 1.5", unit="GB/s"),
        "usual": Line("nine: time", "the usual numpy", "<= 0.17"),
    },
)
def metrics(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    from msdump.analysis.distance.metrics import compare_arrays

    size = (4 if bench.is_quick else 64) << 20
    rng = np.random.default_rng(0)
    y = rng.standard_normal(size // 4).astype(np.float32)
    x = y + np.float32(1e-3) * rng.standard_normal(y.size).astype(np.float32)
    for nine, ten, usual in in_turns(
        lambda: compare_arrays(x, y, has_divergence=False, thread_count=THREADS),
        lambda: compare_arrays(x, y, thread_count=THREADS),
        lambda: _usual_numpy(x, y),
    ):
        yield {"nine": 2 * size / nine / 1e9, "ten": 2 * size / ten / 1e9, "usual": (nine, usual)}


def _dumps(medium: str) -> None:
    reading = "plain reading of the same bytes"
    lines = {
        "nine": Line(f"compare of two dumps, nine metrics, {medium}", aim=">= 5", unit="GB/s"),
        "ten": Line("compare, all ten metrics", aim=">= 1.5", unit="GB/s"),
        "equal": Line("compare, equal bytes: time", reading),
        "linked": Line("compare, the same files: time", "plain reading of one dump", "<= 0.5"),
        "nan": Line("nan: time", reading),
        "stat": Line("stat: time", reading),
    }

    @row(f"compare-{medium}", SECTION, lines)
    def measure(bench: Bench) -> Iterator[Mapping[str, Sample]]:
        from msdump.analysis import compare_dumps, find_non_finite, tensor_statistics

        sizes = spread_sizes(*((60, 8 << 20) if bench.is_quick else (200, 64 << 20)))
        with scratch(medium) as folder:
            mine, golden, copy, linked = (folder / name for name in ("mine", "golden", "copy", "linked"))
            total = write_npy_dump(mine, sizes, 1e-3) + write_npy_dump(golden, sizes)
            shutil.copytree(golden, copy)
            shutil.copytree(golden, linked, copy_function=os.link)
            bench.notes["nine"] = f"{total / 1e9:.2f} GB, {len(sizes)} files a dump"
            calls = {
                "nine": lambda: compare_dumps(mine, golden, has_divergence=False),
                "ten": lambda: compare_dumps(mine, golden),
                "equal": lambda: compare_dumps(golden, copy),
                "linked": lambda: compare_dumps(golden, linked),
                "nan": lambda: find_non_finite(golden),
                "stat": lambda: tensor_statistics(golden),
                "both": lambda: _read_plainly([golden, copy]),
                "single": lambda: _read_plainly([golden]),
            }
            for seconds in in_turns(*calls.values()):
                took = dict(zip(calls, seconds, strict=True))
                rates = {key: total / took[key] / 1e9 for key in ("nine", "ten")}
                ratios = {key: (took[key], took["single"]) for key in ("linked", "nan", "stat")}
                yield {**rates, "equal": (took["equal"], took["both"]), **ratios}


for _medium in MEDIA:
    _dumps(_medium)


@row(
    "compare-first",
    SECTION,
    {"seconds": Line("the first large comparison of a process", aim="<= 3", unit="s")},
    least=1,
)
def first(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    """It pays for the compiler's cache; there is one in a process."""
    from msdump.analysis.distance.metrics import compare_arrays

    x = np.random.default_rng(0).standard_normal(1 << 20).astype(np.float32)
    yield {"seconds": timed(lambda: compare_arrays(x, x + 1))}
