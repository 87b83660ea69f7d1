"""Statistics and digests of arrays in memory, against the bandwidth of np.sum on one core."""

from __future__ import annotations

import hashlib
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

        from msdump.stats import statistics

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


@row("md5", SECTION, {"rate": Line("MD5 of 16 tensors of 4 MiB by hashlib, one core", unit="GB/s")})
def md5(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(1 << 20).astype(np.float32) for _ in range(16)]

    def digests() -> None:
        for array in arrays:
            hashlib.md5(array.data, usedforsecurity=False).hexdigest()

    for (seconds,) in in_turns(digests):
        yield {"rate": sum(array.nbytes for array in arrays) / seconds / 1e9}
