"""The ready questions about tables of a job, on one core: 25 ranks, two iterations, a million rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.registry import Bench, Line, NotMeasurableError, Sample, row
from benchmarks.timing import in_turns, scratch

SECTION = "Tables of a job"
RANKS, STEPS = 25, 2
QUESTIONS = ("hashes", "outliers", "first_divergence")
# Of each tensor four ranks must hold the same bytes.
PART = """
COPY (
    SELECT {rank} AS rank, 0 AS graph, {step} AS iteration, i // 4 AS operator, 'MatMul' AS op_type,
           'MatMul-op' || (i // 4) AS op_name,
           'Default/network/layer' || (i // 400) || '/MatMul-op' || (i // 4) AS full_name,
           if(i % 4 = 3, 'output', 'input') AS io, i % 3 AS slot, (i % 3)::VARCHAR AS slot_name,
           1 + i % 7 + hash(i, {rank}) % 100 / 1e6 AS l2norm, 1.0 AS max, -1.0 AS min,
           md5((i, {step})::VARCHAR) AS md5, 'node' || ({rank} // 8) AS host,
           ({rank} // 4 * 4) || '-' || ({rank} // 4 * 4 + 3) AS equal_ranks, false AS is_unset
    FROM range({rows}) AS t(i)
) TO '{path}' (FORMAT parquet, COMPRESSION zstd)
"""


@row(
    "ranks",
    SECTION,
    {name: Line(f"{name.replace('_', ' ')} of a million rows", aim="<= 2", unit="s") for name in QUESTIONS},
)
def ranks(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    try:
        import duckdb
    except ImportError as error:
        raise NotMeasurableError("needs duckdb (pip install '.[ranks]')") from error
    from msdump.analysis.ranks.questions import Tables

    rows = (100_000 if bench.is_quick else 1_000_000) // (RANKS * STEPS)
    with scratch("disk") as folder:
        for rank in range(RANKS):
            for step in range(STEPS):
                path = folder / f"rank_{rank:05}.iteration_{step:08}.parquet"
                duckdb.sql(PART.format(rank=rank, step=step, rows=rows, path=path))
        tables = Tables(folder, folder)
        tables.sql("SET threads = 1")
        for seconds in in_turns(*(getattr(tables, name) for name in QUESTIONS)):
            yield dict(zip(QUESTIONS, seconds, strict=True))
