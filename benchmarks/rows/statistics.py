"""Statistics and digests of arrays in memory, against the bandwidth of np.sum on one core."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

import numpy as np

from benchmarks.registry import Bench, Line, Sample, row
from benchmarks.timing import in_turns

SECTION = "Statistics"
LIMIT = "bandwidth of np.sum on float32"


def _one_pass(dtype_name: str, aim: str) -> None:
    what = f"one-pass statistics of 64 MiB of {dtype_name}, one core: bandwidth"

    @row(f"statistics-{dtype_name}", SECTION, {"bandwidth": Line(what, LIMIT, aim)})
    def measure(bench: Bench) -> Iterator[Mapping[str, Sample]]:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        import ml_dtypes

        from msdump.statistics.stats import statistics

        size = (8 if bench.is_quick else 64) << 20
        full = np.random.default_rng(0).standard_normal(size // 4).astype(np.float32)
        narrow = ml_dtypes.bfloat16 if dtype_name == "bfloat16" else dtype_name
        array = np.resize(full.astype(narrow), size // np.dtype(narrow).itemsize)
        for limit, ours in in_turns(lambda: np.sum(full), lambda: statistics(array, dtype_name), warm=2, times=3):
            bench.notes["bandwidth"] = f"{size / ours / 1e9:.1f} of {size / limit / 1e9:.1f} GB/s"
            yield {"bandwidth": (limit, ours)}


_one_pass("float32", ">= 0.95")
_one_pass("float16", ">= 0.6")
_one_pass("bfloat16", ">= 0.6")


def _digests(count: int, kibibytes: int, aim: str) -> None:
    line = Line(f"MD5 of {count} tensors of {kibibytes} KiB at once, one core: bandwidth", "hashlib, one by one", aim)

    @row(f"md5-{count}-{kibibytes}k", SECTION, {"rate": line})
    def measure(bench: Bench) -> Iterator[Mapping[str, Sample]]:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        from msdump.statistics.md5 import md5_hex, md5_many

        rng = np.random.default_rng(0)
        arrays = [rng.integers(0, 256, kibibytes << 10, np.uint8) for _ in range(count)]
        size = sum(array.nbytes for array in arrays)

        def single() -> list[str]:
            return [md5_hex(array) for array in arrays]

        md5_many([np.zeros(1 << 20, np.uint8)] * 2)  # loads the machine code, for which little data does not wait
        assert md5_many(arrays) == single()
        for theirs, ours in in_turns(single, lambda: md5_many(arrays), warm=2, times=3):
            bench.notes["rate"] = f"{size / ours / 1e9:.1f} of {size / theirs / 1e9:.2f} GB/s"
            yield {"rate": (theirs, ours)}


for _count, _kibibytes in ((16, 16), (16, 1024), (64, 1024)):
    _digests(_count, _kibibytes, ">= 5")
