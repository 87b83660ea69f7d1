"""What `msdump ranks` costs for a job of many ranks: `python -m benchmarks.scale [--ranks 250 500 1000]`.

Each job is made of tables alone, as its ranks would have written them: 2,000 tensors of a rank, of which a quarter are
the same in 8 neighbours (tensor parallelism) and a quarter in every eighth rank of the job (data parallelism). Three
faults are planted, and the command must name them: an outlier, a hash, a first divergence from a golden job. Printed
are the time of the one command, the same for each rank, its peak memory and the bytes on the disk. Needs
`pip install '.[ranks]'`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

from msdump.analysis.ranks.tables import TABLE_COLUMNS
from msdump.tables.frames import FLAG, INTEGER, NUMBER, SIZES, TEXT

TYPES = {INTEGER: "BIGINT", NUMBER: "DOUBLE", FLAG: "BOOLEAN", TEXT: "VARCHAR", SIZES: "BIGINT[]"}
NEIGHBOURS = 8
# All columns of a part by SQL; those that are not here are NULL.
VALUES = {
    "rank": "{rank}",
    "graph": "0",
    "iteration": "0",
    "operator": "i",
    "op_type": "'MatMul'",
    "op_name": "'MatMul-op' || i",
    "full_name": "'Default/network/layer' || (i // 20) || '/MatMul-op' || i",
    "io": "'output'",
    "slot": "0",
    "slot_name": "'0'",
    "dtype": "'float32'",
    "shape": "[1024::BIGINT, 1024::BIGINT]",
    "size_bytes": "4194304",
    "count": "1048576",
    "max": "4 + i % 3",
    "min": "-4 - i % 5",
    "avg": "hash(i, own) % 1000 / 1e7",
    # Ranks that hold tensors of their own differ by about a thousandth.
    "l2norm": "(1024 + i % 7) * (1 + if(i % 4 > 1, hash(i, own) % 1000 / 1e6, 0)) * {factor}",
    "negative": "524288",
    "positive": "524288",
    "zero": "0",
    "nan": "0",
    "negative_inf": "0",
    "positive_inf": "0",
    "md5": "md5((i, own, {salt})::VARCHAR)",
    "host": "'node' || ({rank} // 8)",
    "rank_count": "{count}",
    "version": "'2.6.0'",
    "time_us": "1700000000000000 + i",
    "placements": "if(i % 4 < 2, 'replicate', 'shard(0)')",
    "equal_ranks": "CASE i % 4 WHEN 0 THEN '{first}-{last}' WHEN 1 THEN '{place}-{end}/8' END",
    "is_unset": "false",
}
# What a rank holds is told by the first rank that must hold the same.
OWN = "CASE i % 4 WHEN 0 THEN {first} WHEN 1 THEN {place} ELSE {rank} END"


def write_job(folder: Path, ranks: int, tensors: int, faults: bool) -> None:
    """Parts of a job; with faults: rank 3 has an outlier, 5 another hash, 7 differs from tensor 100 on."""
    folder.mkdir()
    columns = ", ".join(
        f"({VALUES.get(column.name, 'NULL')})::{TYPES[column.kind]} AS {column.name}" for column in TABLE_COLUMNS
    )
    database = duckdb.connect()
    for rank in range(ranks):
        first, neighbour = rank // NEIGHBOURS * NEIGHBOURS, rank % NEIGHBOURS
        factor, salt = "1", "0"
        if faults:
            outlier, hashed, diverging = tensors // 2 + 2, tensors // 2, tensors // 4
            factor = {3: f"if(i = {outlier}, 50, 1)", 7: f"if(i >= {diverging} AND i % 4 > 1, 1.0001, 1)"}.get(
                rank, "1"
            )
            salt = {3: f"if(i = {outlier}, 1, 0)", 5: f"if(i = {hashed}, 1, 0)",
                    7: f"if(i >= {diverging} AND i % 4 > 1, 1, 0)"}.get(rank, "0")  # fmt: skip
        facts = {"rank": rank, "count": ranks, "first": first, "last": min(first + NEIGHBOURS, ranks) - 1,
                 "place": neighbour, "end": (ranks - 1 - neighbour) // NEIGHBOURS * NEIGHBOURS + neighbour,
                 "factor": factor, "salt": salt}  # fmt: skip
        query = f"SELECT {columns} FROM (SELECT i, {OWN} AS own FROM range({tensors}) AS t(i)) ORDER BY i"
        path = folder / f"rank_{rank:05}.iteration_{0:08}.parquet"
        database.execute(f"COPY ({query.format(**facts)}) TO '{path}' (FORMAT parquet, COMPRESSION zstd)")


def ask(tables: Path, golden: Path, threads: int) -> tuple[float, int, dict[str, object]]:
    """Seconds, peak memory in bytes, and the answer of the command that users type."""
    command = [sys.executable, "-m", "msdump", "ranks", str(tables), "--golden", str(golden), "--json", "-"]
    root = str(Path(__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": str(threads)}
    began = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - began
        output.seek(0)
        assert process.returncode == 1, process.returncode
        return seconds, usage.ru_maxrss * 1024, json.load(output)


def check(answer: dict, tensors: int) -> None:
    """The three faults are what the command names first, and no rank is blamed that has none."""
    assert [one["rank"] for one in answer["suspects"]] == [5], answer["suspects"]
    assert [(one["operator"], one["suspects"]) for one in answer["unequal"]] == [(tensors // 2, [5])]
    outliers = [(one["rank"], one["operator"]) for one in answer["outliers"]]
    assert outliers == [(3, tensors // 2 + 2)], outliers
    first = [(one["rank"], one["operator"]) for one in answer["first_divergence"]]
    assert first == [(7, tensors // 4 + 2), (3, tensors // 2 + 2)], first
    assert not answer["gaps"] and not answer["notes"], (answer["gaps"], answer["notes"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[250, 500, 1000], help="sizes of jobs, from 16 on")
    parser.add_argument("--tensors", type=int, default=2000, help="of each rank, a multiple of 16")
    args = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    print(f"{args.tensors:,} tensors of each rank; {cores} cores\n")
    print("| ranks | rows | on the disk | bytes of a row | time | of a rank | peak memory | of a rank |")
    print("|---|---|---|---|---|---|---|---|")
    for ranks in args.ranks:
        with tempfile.TemporaryDirectory() as folder:
            mine, golden = Path(folder, "mine"), Path(folder, "golden")
            write_job(mine, ranks, args.tensors, faults=True)
            write_job(golden, ranks, args.tensors, faults=False)
            size = sum(path.stat().st_size for path in mine.iterdir())
            seconds, memory, answer = ask(mine, golden, cores)
            check(answer, args.tensors)
        rows = ranks * args.tensors
        print(
            f"| {ranks:,} | {rows:,} | {size / 1e6:.0f} MB | {size / rows:.0f} | {seconds:.1f} s | "
            f"{1000 * seconds / ranks:.1f} ms | {memory / 1e6:.0f} MB | {memory / ranks / 1e6:.2f} MB |",
            flush=True,
        )


if __name__ == "__main__":
    main()
