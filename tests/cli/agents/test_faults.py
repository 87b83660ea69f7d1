"""Five planted faults, each found by an agent that follows a script: at most six calls, each answer below 8 KB.

The programs are those of docs/answers.md.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("mcp.server.mcpserver")
pytest.importorskip("torch")

from tests.answers.program import Program, load
from tests.answers.running import Shell, dump_command
from tests.cli.agents.conftest import Agent, with_agent

MOST_CALLS = 6


def dumped(name: str, folder: Path, *modes: str) -> Program:
    """The program, run in each mode; its dumps are named after these."""
    program = load(name)
    (folder / program.path.name).write_bytes(program.path.read_bytes())
    with Shell() as shell:
        for mode in modes:
            said = shell.dump(dump_command(program, mode, folder), folder)
            assert said.exit == 0, said.text
    return program


def first_id(text: str) -> str:
    """The id in the first row of an answer."""
    return re.search(r"\S+@[-\d]+\.[-\d]+\.[-\d]+", text)[0]


def solve(folder: Path, script) -> None:
    agents = []

    async def work(agent: Agent) -> None:
        agents.append(agent)
        await script(agent)

    with_agent([folder], work)
    assert agents[0].errors == [] and agents[0].calls <= MOST_CALLS


def test_a_loss_that_is_nan(tmp_path: Path) -> None:
    program = dumped("two_towers", tmp_path, "faulty")

    async def script(agent: Agent) -> None:
        assert "faulty" in await agent.ask("list_dumps")
        found = await agent.ask("first_nan", dump="faulty")
        assert "iteration 2" in found and f"two_towers.py:{program.lines[0]}" in found
        shown = await agent.ask("show", dump="faulty", operator=first_id(found))
        assert "aten.sum.dim_IntList-op0 output 0" in shown  # what made its divisor
        divisor = await agent.ask("tensor", dump="faulty", operator=first_id(found), tensor="input:1")
        assert [float(row) for row in divisor.splitlines()[-3:]][1] == 0

    solve(tmp_path, script)


@pytest.mark.slow
def test_a_wrong_port_from_pytorch_to_mindspore(tmp_path: Path) -> None:
    program = dumped("port_softmax_axis", tmp_path, "faulty", "golden")

    async def script(agent: Agent) -> None:
        assert "golden" in await agent.ask("list_dumps")
        found = await agent.ask("compare", mine="faulty", golden="golden")
        assert f"port_softmax_axis.py:{program.lines[0]}" in found and "attribute axis: -2 against -1" in found
        shown = await agent.ask("show", dump="faulty", operator=first_id(found))
        assert "axis=-2" in shown
        same = await agent.ask("where", dump="golden", line="softmax(")
        assert "aten._softmax.default-op0" in same

    solve(tmp_path, script)


@pytest.mark.slow
def test_a_rank_with_a_flipped_bit(tmp_path: Path) -> None:
    dumped("flipped_bit", tmp_path, "faulty")

    async def script(agent: Agent) -> None:
        assert "0-3" in await agent.ask("list_dumps")
        found = await agent.ask("ranks", dump=["faulty"])
        assert found.startswith("rank 3 is outvoted, first in iteration 1: module.weight")
        operator = first_id(found)
        own = await agent.ask("tensor", dump="faulty", operator=operator, tensor="input:0")
        name = operator.partition("@")[0]
        others = await agent.ask("tensor", dump="faulty", operator=f"{name}@0.0.1", tensor="input:0")
        rows = [text.splitlines()[3:] for text in (own, others)]
        pairs = [
            pair for mine, other in zip(*rows, strict=True) for pair in zip(mine.split(), other.split(), strict=True)
        ]
        assert sum(mine != other for mine, other in pairs) == 1 and len(pairs) == 18

    solve(tmp_path, script)


@pytest.mark.slow
def test_a_layer_that_a_quantised_model_loses(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    dumped("quantised_outlier", tmp_path, "faulty", "golden")

    async def script(agent: Agent) -> None:
        assert "faulty" in await agent.ask("list_dumps")
        found = await agent.ask("compare", mine="faulty", golden="golden")
        assert found.startswith("conv3 (Conv) adds") and "one outlier in channel 1" in found
        ranking = await agent.ask("compare", mine="faulty", golden="golden", details=True)
        assert "weight dB 25.9" in ranking
        weight = await agent.ask("tensor", dump="faulty", operator=first_id(found), index="0, 1", as_picture=True)
        assert "picture of [0, 1, :, :]" in weight and agent.picture

    solve(tmp_path, script)


@pytest.mark.slow
def test_an_operator_that_computes_something_else(tmp_path: Path) -> None:
    dumped("msprobe_patched_gelu", tmp_path, "faulty")

    async def script(agent: Agent) -> None:
        assert "faulty" in await agent.ask("list_dumps")
        assert (await agent.ask("first_nan", dump="faulty")).startswith("finite")
        names = await agent.ask("where", dump="faulty", line="F.gelu")
        name = names.splitlines()[1].strip()
        assert name == "Functional.gelu.0.forward"
        again = await agent.ask("replay", dump="faulty", operator=name, iteration=1)
        assert again.startswith("WRONG") and "did not compute what its inputs give" in again
        before = await agent.ask("replay", dump="faulty", operator="Functional.linear.0.forward", iteration=1)
        assert before.startswith("explained")

    solve(tmp_path, script)
