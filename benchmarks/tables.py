"""How fast the ready questions about tables of a job are: `python benchmarks/tables.py [--rows 1000000]`, on one core.

The tables hold 25 ranks and two iterations; of each tensor four ranks must hold the same bytes. Printed are the least
time, the median and what the questions aim at. Needs `pip install '.[ranks]'`.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

from msdump.ranks.questions import Tables

RANKS, STEPS = 25, 2
AIM = 2.0
PART = """
COPY (
    SELECT {rank} AS rank, 0 AS graph, {step} AS iteration, i // 4 AS operator, 'MatMul' AS op_type,
           'MatMul-op' || (i // 4) AS op_name,
           'Default/network/layer' || (i // 400) || '/MatMul-op' || (i // 4) AS full_name,
           if(i % 4 = 3, 'output', 'input') AS io, i % 3 AS slot, (i % 3)::VARCHAR AS slot_name,
           1 + i % 7 + hash(i, {rank}) % 100 / 1e6 AS l2norm, 1.0 AS max, -1.0 AS min,
           md5((i, {step})::VARCHAR) AS md5, 'node' || ({rank} // 8) AS host,
           [({rank} // 4 * 4 + k)::BIGINT FOR k IN range(4)] AS equal_ranks, false AS is_unset
    FROM range({rows}) AS t(i)
) TO '{path}' (FORMAT parquet, COMPRESSION zstd)
"""


def measure(question: Callable[[], object], rounds: int = 5) -> tuple[float, float]:
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        question()
        times.append(time.perf_counter() - began)
    return min(times), statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows // (RANKS * STEPS)
    with tempfile.TemporaryDirectory() as folder:
        for rank in range(RANKS):
            for step in range(STEPS):
                path = Path(folder) / f"rank_{rank:05}.iteration_{step:08}.parquet"
                duckdb.sql(PART.format(rank=rank, step=step, rows=rows, path=path))
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
        print(f"{rows * RANKS * STEPS:,} rows, {size / (rows * RANKS * STEPS):.0f} bytes each on the disk\n")
        tables = Tables(folder, folder)
        tables.sql("SET threads = 1")
        print("| question | min | median | aim |\n|---|---|---|---|")
        for name in ("hashes", "outliers", "first_divergence"):
            least, middle = measure(getattr(tables, name))
            print(f"| {name.replace('_', ' ')} | {least:.2f} s | {middle:.2f} s | {AIM:g} s |")


if __name__ == "__main__":
    main()
