"""Jobs of four ranks: replicas of one weight on a mesh of two by two, and a sharded one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from msdump.formats.sharding_json import (
    REPLICATE,
    SHARD,
    Group,
    Mesh,
    Operand,
    Placement,
    RankSharding,
    TensorSharding,
    write_sharding,
)
from msdump.formats.sidecars import write_metadata
from tests.analysis.small_dump import Array, write_dump

RANKS = 4
IN, OUT = ("input", 0), ("output", 0)
MakeJob = Callable[..., Path]


def layout_of(rank: int, host: str) -> RankSharding:
    """Ranks 0 and 2, and 1 and 3, hold the same half of `Net/Mul`; all of them the same `Net/AllReduce`."""
    mesh = Mesh(("data", "model"), (2, 2), (0, 1, 2, 3), divmod(rank, 2))
    half = TensorSharding((4,), (Placement(REPLICATE), Placement(SHARD, 0)), mesh)
    whole = TensorSharding((2,), (Placement(REPLICATE), Placement(REPLICATE)), mesh)
    operands = (
        Operand(0, "Net/Mul-op0", "output", 0, 0, half),
        Operand(0, "Net/AllReduce-op1", "output", 0, 0, whole),
    )
    return RankSharding(rank, RANKS, host, (Group("0", (0, 1, 2, 3)),), (mesh,), operands)


def shift(folder: Path, seconds: int) -> None:
    """Time stamps in the names of files as another clock would have them."""
    for path in list(folder.iterdir()):
        stamp = path.name.split(".")[4]
        path.rename(path.with_name(path.name.replace(stamp, str(int(stamp) + seconds * 1_000_000))))


@pytest.fixture
def make_job(tmp_path: Path) -> MakeJob:
    """A function that writes a job.

    spoil(rank, iteration, operator, array)  changes what a rank holds
    version(rank)  that dumped it
    clock(rank)    seconds by which its clock is ahead
    """

    def make(
        name: str = "job",
        iterations: int = 3,
        spoil: Callable[[int, int, str, Array], Array] = lambda rank, iteration, operator, array: array,
        ranks: range = range(RANKS),
        version: Callable[[int], str] = lambda rank: "2.6.0",
        clock: Callable[[int], int] = lambda rank: 0,
    ) -> Path:
        root = tmp_path / name
        for rank in ranks:
            for iteration in range(iterations):
                arrays = {
                    "Net/Mul-op0": np.arange(2, dtype=np.float32) + 10 * (rank % 2) + iteration,
                    "Net/AllReduce-op1": np.full(2, 5 + iteration, np.float32),
                    "Net/Own-op2": np.full(2, 1 + rank / 100, np.float32),
                    # Garbage, of another size on each rank.
                    "Net/aten_empty_like_default-op3": np.full(2, 1e20 * rank**9, np.float32),
                }
                operators = [(key, {OUT: spoil(rank, iteration, key, value)}) for key, value in arrays.items()]
                write_dump(root, operators, iteration=iteration, rank=rank)
                if clock(rank):
                    shift(root / f"rank_{rank}/Net/0/{iteration}", clock(rank))
            write_metadata(root / f"rank_{rank}/.dump_metadata", b"{}", "Ascend", version(rank))
            write_sharding(root / f"rank_{rank}/.dump_metadata", layout_of(rank, f"node{rank // 2}"))
        return root

    return make
