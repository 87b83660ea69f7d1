"""Merging: whatever a mesh and placements cut into parts comes back as it was."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msdump
from msdump.analysis.ranks.merge import merge_ranks
from msdump.cli.main import main
from msdump.errors import ConfigError
from msdump.formats.sharding_json import (
    PARTIAL,
    REPLICATE,
    SHARD,
    Mesh,
    Operand,
    Placement,
    RankSharding,
    TensorSharding,
    write_sharding,
)
from tests.analysis.small_dump import Array, write_dump

NAME = "Net/MatMul-op0"
OUT = ("output", 0)


def write_job(root: Path, whole: Array, sizes: tuple[int, ...], placements: tuple[Placement, ...]) -> None:
    """Each rank with its part of a tensor; terms of a sum are equal shares."""
    count = int(np.prod(sizes))
    for rank in range(count):
        coordinates = tuple(int(one) for one in np.unravel_index(rank, sizes))
        mesh = Mesh(("",) * len(sizes), sizes, tuple(range(count)), coordinates)
        sharding = TensorSharding(whole.shape, placements, mesh)
        block = sharding.block(rank)
        assert block is not None
        share = np.prod([size for one, size in zip(placements, sizes, strict=True) if one.kind == PARTIAL], dtype=int)
        part = (whole[block] / share).astype(whole.dtype)
        write_dump(root, [(NAME, {OUT: part})], rank=rank)
        operand = Operand(0, NAME, "output", 0, 0, sharding)
        write_sharding(root / f"rank_{rank}/.dump_metadata", RankSharding(rank, count, "node", (), (mesh,), (operand,)))


PLACEMENTS = st.sampled_from(
    [Placement(REPLICATE), Placement(SHARD, 0), Placement(SHARD, 1), Placement(PARTIAL, operation="sum")]
)


@settings(max_examples=40)
@given(
    st.tuples(st.integers(1, 7), st.integers(1, 5)),
    st.lists(st.tuples(st.sampled_from([1, 2, 4]), PLACEMENTS), min_size=1, max_size=2),
)
def test_what_was_cut_comes_back(shape: tuple[int, int], axes: list[tuple[int, Placement]]) -> None:
    whole = 8.0 * np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_job(root / "job", whole, tuple(size for size, _ in axes), tuple(one for _, one in axes))
        merged = merge_ranks([root / "job"], root / "whole")
        assert (merged.tensors, merged.problems) == (1, [])
        (tensor,) = msdump.open(root / "whole").tensors()
        assert tensor.load().tobytes() == whole.tobytes() and tensor.shape == shape and tensor.full_name == NAME


def test_a_job_is_compared_with_one_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
    write_job(tmp_path / "job", whole, (2, 2), (Placement(SHARD, 0), Placement(SHARD, 1)))
    write_job(tmp_path / "other", whole, (4,), (Placement(SHARD, 0),))
    write_dump(tmp_path / "one", [(NAME, {OUT: whole})])
    assert main(["compare", str(tmp_path / "job"), str(tmp_path / "one"), "--merge"]) == 0
    assert "1 of them joined from several ranks" in capsys.readouterr().err
    assert main(["compare", str(tmp_path / "job"), str(tmp_path / "other"), "--merge"]) == 0
    # A wrong dimension: the shapes fit, the contents do not.
    square = np.arange(16, dtype=np.float32).reshape(4, 4)
    write_job(tmp_path / "wrong", square.T.copy(), (2,), (Placement(SHARD, 0),))
    write_dump(tmp_path / "right", [(NAME, {OUT: square})])
    assert main(["compare", str(tmp_path / "wrong"), str(tmp_path / "right"), "--merge"]) == 1
    assert "MatMul-op0" in capsys.readouterr().out


def test_a_missing_rank_is_said(tmp_path: Path) -> None:
    write_job(tmp_path / "job", np.zeros((4, 4), np.float32), (2,), (Placement(SHARD, 0),))
    for path in sorted((tmp_path / "job/rank_1/Net").rglob("*.npy")):
        path.unlink()
    merged = merge_ranks([tmp_path / "job"], tmp_path / "whole")
    assert merged.tensors == 0 and "expected the part of rank 1, got none" in merged.problems[0][1]
    with pytest.raises(ConfigError, match="expected no such folder yet"):
        merge_ranks([tmp_path / "job"], tmp_path / "job")


def test_the_tolerance_of_a_changed_run(tmp_path: Path) -> None:
    whole = np.ones((8,), np.float32)
    for name, error in {"golden": 0.0, "changed": 0.01, "near": 0.015, "far": 0.1}.items():
        write_dump(tmp_path / name, [(NAME, {OUT: (whole + error).astype(np.float32)})])
    near, far, golden = (str(tmp_path / name) for name in ("near", "far", "golden"))
    assert main(["compare", near, golden, "-q"]) == 1
    assert main(["compare", near, golden, "-q", "--tolerance-from", str(tmp_path / "changed")]) == 0
    assert main(["compare", far, golden, "-q", "--tolerance-from", str(tmp_path / "changed")]) == 1
