"""What the user says of layouts: dims strings and strategy files cut and join as meshes do."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("duckdb")

from msdump.analysis.ranks.dims import parse_dims, parse_mesh, part_of_mesh
from msdump.analysis.ranks.shardings import sharding_rules, strategy_sharding
from msdump.cli.main import main
from msdump.errors import ConfigError
from msdump.formats.strategy_file import ParameterStrategy
from tests.analysis.small_dump import Array, write_dump

OUT, IN = ("output", 0), ("input", 0)
MESH = parse_mesh("dp=2,tp=2")


def test_ranks_and_axes_of_a_mesh() -> None:
    whole = part_of_mesh(parse_mesh("pp=2, dp=3 ,tp=4"), 23, ("pp", "dp", "tp"))
    assert (whole.sizes, whole.ranks, whole.coordinates) == ((2, 3, 4), tuple(range(24)), (1, 2, 3))
    part = part_of_mesh(parse_mesh("pp=2,dp=3,tp=4"), 23, ("pp", "tp"))
    assert (part.ranks, part.coordinates) == ((8, 9, 10, 11, 20, 21, 22, 23), (1, 3))
    with pytest.raises(ConfigError, match="expected sizes of a job that has rank 4, got 4 ranks"):
        part_of_mesh(MESH, 4, ("tp",))


@pytest.mark.parametrize("text", ["", "dp", "dp=0", "dp=2,dp=2", "2=dp", "dp=2;tp=2", "a=9999999,b=9999999"])
def test_wrong_meshes(text: str) -> None:
    with pytest.raises(ConfigError, match=r"--mesh: expected (axes and|at most)"):
        parse_mesh(text)


@pytest.mark.parametrize(
    ("text", "placements", "shape", "equal_ranks"),
    [
        # Ranks of dp have data of their own, where nothing else is said.
        ("b s h[tp]", "tp", (2, 3, 8), (3,)),
        ("b[dp] s h[tp]", "dp tp", (4, 3, 8), (3,)),
        ("b s h", "tp", (2, 3, 4), (2, 3)),
        ("b s h # dp:replicated", "dp tp", (2, 3, 4), (0, 1, 2, 3)),
        ("b s h[tp:partial]", "tp", (2, 3, 4), (3,)),
        ("b 1 (heads*d)[dp,tp:sharded]", "dp tp", (2, 3, 16), (3,)),
        ("b s h[tp:natural] # dp:replicated", "dp tp", (2, 3, 8), (1, 3)),
    ],
)
def test_what_a_string_means(text: str, placements: str, shape: tuple[int, ...], equal_ranks: tuple[int, ...]) -> None:
    sharding = parse_dims(text, MESH).sharding(MESH, 3, (2, 3, 4))
    assert (" ".join(sharding.mesh.names), sharding.shape, sharding.equal_ranks) == (placements, shape, equal_ranks)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected the dimensions of a tensor, got none"),
        ("b s h[pt]", "axes of the mesh .dp, tp., got 'pt'"),
        ("b[tp] h[tp]", "expected each axis once, got 'tp' again"),
        ("b[cp:zigzag]", "axes of the mesh"),
        ("b[tp:zigzag]", "expected sharded, natural or partial behind tp, got 'zigzag'"),
        ("b h(tp)", "dimensions such as b"),
        ("b # dp:=attn", "declarations such as dp:replicated"),
        ("b[tp] # tp:replicated", "each axis once"),
    ],
)
def test_wrong_strings(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_dims(text, MESH)


def test_rules_need_both_and_a_pattern() -> None:
    for arguments in (("dp=2", []), (None, ["a=b"]), ("dp=2", ["nothing"]), ("dp=2", ["=b"])):
        with pytest.raises(ConfigError):
            sharding_rules(*arguments)
    assert sharding_rules() is None
    rules = sharding_rules("tp=2", ["*/MatMul-op*:input:1=i o[tp]", "Norm-op1=b h", "*:input=a"])
    assert rules is not None

    def found(name: str, io: str, slot: int, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        sharding = rules.find(0, name, io, slot, shape)
        return None if sharding is None else sharding.shape

    assert (
        found("Net/MatMul-op3", "input", 1, (2, 2)) == (2, 4) and found("Net/MatMul-op3", "output", 1, (2, 2)) is None
    )
    assert found("Net/Norm-op1", "output", 5, (2, 2)) == (2, 2) and found("Net/Norm-op11", "output", 0, (2, 2)) is None
    assert found("Net/MatMul-op3", "input", 0, (2,)) == (2,)
    with pytest.raises(ConfigError, match=r"expected a tensor of 1 dimensions, got shape \(2, 2\)"):
        found("Net/MatMul-op3", "input", 0, (2, 2))


def write_job(root: Path, whole: Array, name: str = "Net/MatMul-op0") -> Path:
    """Rows over dp, columns over tp; no layout.json."""
    for rank in range(4):
        row, column = divmod(rank, 2)
        write_dump(root, [(name, {OUT: whole[2 * row : 2 * row + 2, 4 * column : 4 * column + 4]})], rank=rank)
    return root


def test_dims_join_what_no_layout_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = np.arange(32, dtype=np.float32).reshape(4, 8)
    job = write_job(tmp_path / "job", whole)
    write_dump(tmp_path / "one", [("Net/MatMul-op0", {OUT: whole})])
    command = ["compare", str(job), str(tmp_path / "one"), "--merge"]
    assert main(command) != 0
    rules = ["--mesh", "dp=2,tp=2", "--dims"]
    assert main([*command, *rules, "*MatMul*=b[dp] h[tp]"]) == 0
    assert "1 of them joined from several ranks" in capsys.readouterr().err
    assert main([*command, *rules, "*MatMul*=b[tp] h[dp]"]) == 1
    assert main([*command[:3], *rules, "*=b h"]) == 2  # without --merge


def test_dims_say_what_must_be_equal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for rank in range(4):
        value = np.full(4, 7 if rank == 2 else 1, np.float32)
        write_dump(tmp_path / "job", [("Net/Sum-op0", {OUT: value})], rank=rank)
    command = ["ranks", str(tmp_path / "job"), "--jobs", "1", "--json", "-"]
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["compared"] == 0
    assert main([*command, "--mesh", "tp=4", "--dims", "Sum-op*=h"]) == 1
    assert json.loads(capsys.readouterr().out)["suspects"] == [{"rank": 2, "tensors": 1}]
    # A string that does not fit is said by every part.
    assert main([*command, "--mesh", "tp=4", "--dims", "Sum-op*=b h"]) == 2
    assert "expected a tensor of 2 dimensions, got shape (4,)" in capsys.readouterr().err


axes = st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=3)


@given(st.data(), axes, st.integers(0, 2))
def test_a_strategy_cuts_as_mindspore_does(data: st.DataObject, sizes: list[int], stage: int) -> None:
    """The parts of a stage's ranks are those of MindSpore's rule, and each element is in as many as it has copies."""
    cutting = data.draw(st.lists(st.sampled_from(range(-1, len(sizes))), min_size=1, max_size=2))
    if len({one for one in cutting if one >= 0}) != len([one for one in cutting if one >= 0]):
        return
    count = math.prod(sizes)
    strategy = ParameterStrategy("w", stage, tuple(sizes), tuple(cutting))
    cuts = [1 if axis < 0 else sizes[len(sizes) - 1 - axis] for axis in cutting]
    for rank in range(count):
        sharding = strategy_sharding(strategy, stage * count + rank, tuple(2 for _ in cuts))
        assert sharding is not None and sharding.shape == tuple(2 * cut for cut in cuts)
        block = sharding.block(stage * count + rank)
        place = np.unravel_index(rank, sizes)
        for dim, axis in enumerate(cutting):
            piece = 0 if axis < 0 else int(place[len(sizes) - 1 - axis])
            assert block is not None and (block[dim].start, block[dim].stop) == (2 * piece, 2 * piece + 2)
        assert len(sharding.equal_ranks) == count // math.prod(cuts)
    assert strategy_sharding(strategy, (stage + 1) * count, tuple(2 for _ in cuts)) is None


@pytest.mark.parametrize(
    ("shard", "rows"),
    [
        # dp=4, tp=2, rows over tp: ranks 0, 2, 4, 6 hold copies of the first half.
        ((0, 0), [0, 4, 0, 4, 0, 4, 0, 4]),
        ((2, 4), [0, 16, 4, 20, 8, 24, 12, 28]),
        ((2, 2), [0, 8, 4, 12, 0, 8, 4, 12]),
    ],
)
def test_the_parallel_optimizer_cuts_once_more(shard: tuple[int, int], rows: list[int]) -> None:
    strategy = ParameterStrategy("w", 0, (4, 2), (0, -1), *shard)
    shardings = [strategy_sharding(strategy, rank, (4, 3)) for rank in range(8)]
    starts = [sharding.block(rank)[0].start for rank, sharding in enumerate(shardings) if sharding is not None]  # type: ignore[index]
    assert starts == rows
    assert strategy_sharding(ParameterStrategy("w", 0, (4, 2), (0, -1), 3, 2), 0, (4, 3)) is None


def test_a_strategy_file_of_mindspore(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = np.arange(32, dtype=np.float32).reshape(4, 8)
    job = write_job(tmp_path / "job", whole, "Parameter.fc.weight")
    write_dump(tmp_path / "one", [("Parameter.fc.weight", {OUT: whole})])
    item: dict[str, Any] = {"dev_matrix": [2, 2], "tensor_map": [1, 0], "tensor_shape": [4, 8], "field": 0,
                            "opt_weight_shard_step": 0, "opt_weight_shard_size": 0}  # fmt: skip
    content = {"current_stage": 0, "parallel_strategy_item": {}, "parallel_layout_item": {"fc.weight": item}}
    (tmp_path / "strategy.json").write_text(json.dumps(content))
    command = ["compare", str(job), str(tmp_path / "one"), "--merge", "--strategy", str(tmp_path / "strategy.json")]
    assert main(command) == 0, capsys.readouterr()
    assert "1 of them joined from several ranks" in capsys.readouterr().err
    item["tensor_map"] = [0, 1]
    (tmp_path / "strategy.json").write_text(json.dumps(content))
    assert main(command) == 1
    assert main([*command[:-1], str(tmp_path / "none.json")]) == 2
