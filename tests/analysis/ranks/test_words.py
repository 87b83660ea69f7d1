"""What `msdump ranks` says first: rank, iteration and parameter; what nothing declares equal; statistics alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest

pytest.importorskip("duckdb")

from msdump.analysis.graph_info import GraphFile, GraphNode, Origin
from msdump.analysis.overview.contents import Contents
from msdump.analysis.ranks.subjects import gradients_in
from msdump.analysis.ranks.words import headlines
from msdump.analysis.stat.statistics import write_statistic_files
from msdump.cli.main import main
from msdump.formats.sharding_json import (
    REPLICATE,
    SHARD,
    Mesh,
    Operand,
    Placement,
    RankSharding,
    TensorSharding,
    write_sharding,
)
from msdump.viewing.pages import Pages
from tests.analysis.small_dump import Array, write_dump

RANKS = 4
OUT = ("output", 0)
Node: TypeAlias = "tuple[str, dict[str, tuple[str, int | None]]]"
Spoil = Callable[[int, int, str], float]


def make_job(
    root: Path, spoil: Spoil, declared: Sequence[str] = ("Parameter.head",), cut: Sequence[str] = (), ranks: int = RANKS
) -> Path:
    """Two iterations of parameters `head`, `proj`, `part` and `norm.running_mean` on each rank, of the same values.

    spoil     what is added on a rank, in an iteration, to a parameter
    declared  parameters that layout.json says are replicas; cut: of which each rank has a part
    """
    for rank in range(ranks):
        for iteration in range(2):
            operators: list[tuple[str, dict[tuple[str, int], Array]]] = []
            for number, name in enumerate(("head", "proj", "part", "norm.running_mean")):
                value = np.arange(3, dtype=np.float32) + number + np.float32(spoil(rank, iteration, name))
                operators.append((f"Parameter.{name}", {OUT: value}))
            write_dump(root, operators, iteration=iteration, rank=rank)
        mesh = Mesh(("replicas",), (ranks,), tuple(range(ranks)), (rank,))
        whole, part = (TensorSharding((3,), (one,), mesh) for one in (Placement(REPLICATE), Placement(SHARD, 0)))
        operands = [Operand(0, name.removeprefix("Parameter."), "output", 0, 0, whole) for name in declared]
        operands += [Operand(0, name.removeprefix("Parameter."), "output", 0, 0, part) for name in cut]
        write_sharding(
            root / f"rank_{rank}/.dump_metadata", RankSharding(rank, ranks, "node", (), (mesh,), tuple(operands))
        )
    return root


def said(job: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    status = main(["ranks", str(job), "--jobs", "1"])
    return status, capsys.readouterr().out.splitlines()


def test_the_first_line_names_rank_iteration_and_parameter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, lines = said(make_job(tmp_path / "job", lambda *at: at == (2, 1, "head")), capsys)
    assert status == 1
    assert lines[0] == "rank 2 is outvoted, first in iteration 1: head (graph 0), which ranks 0, 1, 2, 3 must share"


def test_a_headline_says_from_when_on(tmp_path: Path) -> None:
    job = make_job(tmp_path / "job", lambda rank, iteration, name: rank == 1 and name == "head")
    assert headlines(Contents(job, is_job=True).job) == ["rank 1: head differs from iteration 0 on"]


def test_the_report_of_a_job_opens_with_the_vote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = make_job(tmp_path / "job", lambda *at: at == (2, 1, "head"))
    assert main(["report", str(job), "-o", str(tmp_path / "report.html"), "--md", str(tmp_path / "report.md")]) == 0
    words = "rank 2: head differs in iteration 1"
    assert capsys.readouterr().out.splitlines()[0] == words
    contents = Contents(job, is_job=True)
    at = Pages(contents).get("overview")["verdict"]["at"]
    assert (at["step"], at["name"]) == ([2, 0, 1], "head") and at["operator"] is not None
    assert Pages(contents).get("overview")["outvoted"] == [[2, 1]]
    assert words.partition(":")[0] in (tmp_path / "report.md").read_text()
    assert Contents(make_job(tmp_path / "one", lambda *at: 0.0, ranks=1), is_job=True).job is None


def test_two_ranks_have_no_majority(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, lines = said(make_job(tmp_path / "job", lambda *at: at == (1, 0, "head"), ranks=2), capsys)
    assert status == 1 and lines[0].startswith("ranks 0, 1 differ, without a majority, first in iteration 0: head")


def test_what_nothing_declares_equal_is_named_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = make_job(tmp_path / "job", lambda rank, step, name: float(rank == 3 and name == "proj"))
    status, lines = said(job, capsys)
    assert status == 1 and "all of them are equal" in lines
    words = "differs between ranks, not declared equal by anything: proj (from iteration 0 on, rank 3 outvoted)"
    assert lines[0] == words and sum("proj" in line for line in lines) == 1
    assert main(["ranks", str(job), "--jobs", "1", "--json", "-"]) == 1
    rows = json.loads(capsys.readouterr().out)["undeclared"]
    assert rows == [{"name": "proj", "iteration": 0, "ranks": [0, 1, 2, 3], "suspects": [3]}]
    assert Pages(Contents(job, is_job=True)).get("overview")["outvoted"] == [[3, 1]]
    assert Pages(Contents(job)).get("overview")["outvoted"] == []


@pytest.mark.parametrize(
    ("name", "declared", "cut"),
    [
        pytest.param("norm.running_mean", ["Parameter.head"], [], id="running statistics differ by design"),
        pytest.param("part", ["Parameter.head"], ["Parameter.part"], id="a shard is a part of its own"),
        pytest.param("proj", [], [], id="ranks that share nothing may be stages or parts by hand"),
        pytest.param("proj", [], ["Parameter.head"], id="and so may those of a sharded model"),
    ],
)
def test_what_may_differ_is_not_named(
    name: str, declared: list[str], cut: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = make_job(tmp_path / "job", lambda rank, step, other: float(rank * (other == name)), declared, cut)
    status, lines = said(job, capsys)
    assert status == 0 and not any(name in line for line in lines), lines


@pytest.mark.parametrize("is_faulty", [True, False])
def test_statistics_alone_are_compared(is_faulty: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = make_job(tmp_path / "job", lambda rank, step, name: is_faulty * (rank, name) == (1, "head") and 0.5)
    write_statistic_files(job, tmp_path / "statistics")
    for path in (tmp_path / "statistics").rglob("statistic.csv"):
        without_md5 = [line.rsplit(",", 1)[0] for line in path.read_text().splitlines()]
        path.unlink()
        path.write_text("\n".join(without_md5) + "\n")
    for rank in range(RANKS):
        layout = job / f"rank_{rank}/.dump_metadata/layout.json"
        target = tmp_path / "statistics" / layout.relative_to(job)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(layout.read_bytes())
    status, lines = said(tmp_path / "statistics", capsys)
    assert any(line.startswith("note: no hashes, as the dump has statistics alone: max, min") for line in lines)
    assert status == is_faulty
    assert lines[0].startswith("rank 1 is outvoted, first in iteration 0: head" if is_faulty else "4 ranks")


def graph_of(*nodes: Node) -> GraphFile:
    """Operators (name, argument -> value) of one graph; the type is the name up to `-op`."""
    made = tuple(
        GraphNode(name, name.rsplit("-op", 1)[0], (), tuple(Origin(*value) for value in read.values()), {}, tuple(read))
        for name, read in nodes
    )
    return GraphFile(Path("g"), 2, 0, made, {node.full_name: node for node in made}, is_open=True)


ADAM: tuple[Node, ...] = (
    ("aten.mul_.Tensor-op0", {"self": ("grad", None), "other": ("coefficient", None)}),
    ("aten.lerp_.Scalar-op0", {"self": ("moment", None), "end": ("aten.mul_.Tensor-op0", 0)}),
    ("aten.mul_.Tensor-op1", {"self": ("square", None)}),
    (
        "aten.addcmul_.default-op0",
        {"self": ("aten.mul_.Tensor-op1", 0), "t1": ("aten.mul_.Tensor-op0", 0), "t2": ("aten.mul_.Tensor-op0", 0)},
    ),
    ("aten.sqrt.default-op0", {"self": ("aten.addcmul_.default-op0", 0)}),
    (
        "aten.addcdiv_.default-op0",
        {"self": ("fc.weight", None), "t1": ("aten.lerp_.Scalar-op0", 0), "t2": ("aten.sqrt.default-op0", 0)},
    ),
)


def test_the_gradient_is_told_from_the_state_of_the_optimizer() -> None:
    graph = graph_of(*ADAM)
    shapes = {
        (node.full_name, io, slot): () if node.inputs[slot : slot + 1] == (Origin("coefficient", None),) else (2, 3)
        for node in graph.nodes
        for io in ("input", "output")
        for slot in range(len(node.inputs))
    }
    found = gradients_in(graph, {"fc.weight"}, shapes)
    assert found == {("grad", None): "fc.weight", ("aten.mul_.Tensor-op0", 0): "fc.weight"}


def test_operators_on_lists_pair_a_parameter_with_its_gradient() -> None:
    """What is copied into a parameter is a value of it, no gradient."""
    names: dict[str, tuple[str, int | None]] = {
        "self[0]": ("a.w", None),
        "self[1]": ("b.w", None),
        "other[0]": ("g", None),
        "other[1]": ("h", None),
    }
    graph = graph_of(
        ("aten._foreach_add_.List-op0", names), ("aten.copy_.default-op0", {"self": ("c.w", None), "src": ("x", None)})
    )
    assert gradients_in(graph, set(), {}) == {("g", None): "a.w", ("h", None): "b.w"}
