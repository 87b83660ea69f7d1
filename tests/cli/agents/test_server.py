"""`msdump mcp`: its tools as the protocol's own client sees them."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mcp.server.mcpserver")

from msdump.cli.main import COMMANDS
from tests.analysis.ranks.test_replicated import change, make_replicas
from tests.analysis.small_dump import floats, write_dump
from tests.cli.agents.conftest import MOST, Agent, with_agent

TOOLS = {
    "list_dumps", "describe_dump", "first_nan", "compare", "ranks", "show", "where", "tensor", "sql", "replay",
    "search_docs", "read_docs",
}  # fmt: skip


def operators(value: float) -> list:
    return [
        ("Net/Exp-op0", {("input", 0): floats(1, 2), ("output", 0): floats(2.7182817, 7.389056)}),
        ("Net/Log-op1", {("input", 0): floats(2.7182817, 7.389056), ("output", 0): floats(1, value)}),
    ]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """mine, whose logarithm is NaN, and golden; a damaged one; one with a hostile name."""
    folder = tmp_path / "runs"
    write_dump(folder / "mine", operators(float("nan")))
    write_dump(folder / "golden", operators(2))
    write_dump(folder / "damaged", operators(2))
    cut = next((folder / "damaged").rglob("*Exp*output*.npy"))
    cut.write_bytes(cut.read_bytes()[:-4])
    write_dump(folder / "evil", [("Net/Add-op0", {("output", 0): floats(1)})])
    for file in (folder / "evil").rglob("*.npy"):
        file.rename(file.with_name(file.name.replace("Add-op0", "\x1b]0;x\x07<b>-op0")))
    (folder / "empty").mkdir()
    (tmp_path / "secret").mkdir()
    write_dump(tmp_path / "secret", operators(2))
    (folder / "out").symlink_to(tmp_path / "secret")
    return folder


def test_descriptions_are_for_an_agent(runs: Path) -> None:
    async def look(agent: Agent) -> None:
        tools = {tool.name: tool for tool in (await agent.session.list_tools()).tools}
        assert set(tools) == TOOLS
        for tool in tools.values():
            assert tool.annotations.read_only_hint and 40 < len(tool.description) < 500 and tool.output_schema is None
            assert "\n" not in tool.description.strip()
            for name, schema in tool.input_schema["properties"].items():
                assert schema.get("description"), (tool.name, name)

    with_agent([runs], look)


def test_questions_and_their_answers(runs: Path) -> None:
    pytest.importorskip("duckdb")

    async def look(agent: Agent) -> None:
        listed = await agent.ask("list_dumps")
        assert all(name in listed for name in ("mine", "golden")) and "secret" not in listed
        assert "2 operators" in await agent.ask("describe_dump", dump="mine")
        found = await agent.ask("first_nan", dump="mine")
        assert found.startswith("first NaN, made") and "Log-op1@0.0.0" in found
        assert (await agent.ask("first_nan", dump="golden")).startswith("finite")
        assert "infects" not in found and "no unexpected Inf" in await agent.ask("first_nan", dump="mine", details=True)
        assert "Log-op1@0.0.0" in await agent.ask("compare", mine="mine", golden=str(runs / "golden"))
        assert "output 0" in await agent.ask("show", dump="mine", operator="Log-op1@0.0.0")
        assert "1 NaN at [1]" in await agent.ask("tensor", dump="mine", operator="Log-op1@0.0.0")
        assert "7.389056" in await agent.ask("tensor", dump="mine", operator="Log-op1", tensor="input:0", index="1:")
        counted = await agent.ask("sql", dump="mine", query="select count(*) as tensors from tensors")
        assert (
            counted.split()
            == ["tensors", "4"]
            == (await agent.ask("sql", dump="mine", query="select count(*) as tensors from tensors")).split()
        )
        assert "my-loss-is-nan.md" in await agent.ask("search_docs", words="--my loss is NaN")
        assert (await agent.ask("read_docs", page="ranks.md#questions")).startswith("## Questions")
        assert agent.errors == []

    with_agent([runs], look)


def test_a_picture_is_an_image(runs: Path) -> None:
    pytest.importorskip("PIL")
    noise = np.random.default_rng(0).normal(size=(500, 500)).astype(np.float32)
    write_dump(runs / "noise", [("Net/Noise-op0", {("output", 0): noise})])

    async def look(agent: Agent) -> None:
        text = await agent.ask("tensor", dump="noise", operator="Noise-op0", as_picture=True)
        assert "500 x 500 elements: dark is" in text and base64.b64decode(agent.picture).startswith(b"\x89PNG")

    with_agent([runs], look)


def test_paths_elsewhere_are_refused_and_nothing_is_written(runs: Path) -> None:
    pytest.importorskip("duckdb")
    before = {path: path.stat().st_mtime_ns for path in runs.parent.rglob("*")}

    async def look(agent: Agent) -> None:
        secret = str(runs.parent / "secret")
        for path in (secret, "../secret", "out", "mine/../../secret", "/etc"):
            await agent.ask("first_nan", dump=path)
            await agent.ask("list_dumps", path=path)
        await agent.ask("compare", mine="mine", golden=secret)
        await agent.ask("compare", mine="mine", golden="golden", mapping="/etc/passwd")
        await agent.ask("ranks", dump=["mine", secret])
        await agent.ask("replay", dump="mine", operator="Exp-op0", model=f"{secret}/net.onnx")
        assert len(agent.errors) == agent.calls
        assert all("lies elsewhere" in error for error in agent.errors), agent.errors
        agent.errors.clear()
        for query in ("select * from '/etc/passwd'", f"copy tensors to '{runs}/x.csv'", "install httpfs"):
            await agent.ask("sql", dump="mine", query=query)
        assert len(agent.errors) == 3 and all("SQL: expected" in error for error in agent.errors)

    with_agent([runs], look)
    assert {path: path.stat().st_mtime_ns for path in runs.parent.rglob("*")} == before


def test_text_of_an_agent_is_no_option(runs: Path) -> None:
    async def look(agent: Agent) -> None:
        for text in ("-o", "--all", "--picture=x.png"):
            await agent.ask("show", dump="mine", operator=text)
            await agent.ask("where", dump="mine", line=text)
        assert len(agent.errors) == 6 and not any("usage" in error for error in agent.errors), agent.errors

    with_agent([runs], look)
    assert not list(runs.rglob("x.png"))


def test_what_is_wrong_with_a_dump_is_said(runs: Path) -> None:
    async def look(agent: Agent) -> None:
        assert "damaged: " in await agent.ask("describe_dump", dump="damaged") and agent.errors == []
        await agent.ask("first_nan", dump="empty")
        await agent.ask("first_nan", dump="nowhere")
        await agent.ask("show", dump="mine", operator="Lgo-op1")
        empty, nowhere, typo = agent.errors
        assert "expected tensors or statistics" in empty and "where nothing is" in nowhere
        assert 'Did you mean "Log-op1"' in typo

    with_agent([runs], look)


def test_long_answers_say_how_they_go_on(tmp_path: Path) -> None:
    for iteration in range(1000):
        write_dump(tmp_path, operators(2)[:1], iteration=iteration, has_order=False)

    async def look(agent: Agent) -> None:
        line, seen = 1, set()
        while line:
            text = await agent.ask("describe_dump", dump=".", show_all=True, from_line=line)
            seen |= set(map(int, re.findall(r"^ +(\d+)$", text, re.MULTILINE)))
            rest = re.search(r"from_line=(\d+) goes on", text)
            line = int(rest[1]) if rest else 0
        assert seen == set(range(1000)) and agent.calls > 1

    with_agent([tmp_path], look)


def test_names_of_a_dump_control_no_terminal(runs: Path) -> None:
    async def look(agent: Agent) -> None:
        assert "<b>-op0" in await agent.ask("describe_dump", dump="evil")
        assert "<b>-op0" in await agent.ask("show", dump="evil", operator="*-op0*")

    with_agent([runs], look)


def test_an_answer_may_not_take_for_ever(runs: Path) -> None:
    async def look(agent: Agent) -> None:
        await agent.ask("first_nan", dump="mine")
        assert "expected an answer in 0.01 s" in agent.errors[0]

    with_agent([runs], look, "--timeout", "0.01")


def test_wrong_calls_are_refused_in_a_few_words(runs: Path) -> None:
    async def look(agent: Agent) -> None:
        await agent.ask("show", dump="mine", operator="x" * 10_001)
        await agent.ask("ranks", dump=["mine"] * 5000)
        await agent.ask("first_nan", dmup="mine")
        await agent.ask("ranks", dumps="mine")
        await agent.ask("first_nan", **{"y" * 100_000: 1}, dump="mine")
        await agent.ask("first_nan", dump=[0] * 3000)
        await agent.ask("show", dump="mine", operator="z" * 9000)
        await agent.ask("sql", dump="mine", query="select " + "(" * 9000)
        long, many, typo, plural, name, kind, *_ = agent.errors
        assert "at most 500 brackets" in agent.errors[7]
        assert len(agent.errors) == 8 and "operator: expected at most 10000 characters, got 10001" in long
        assert "dump: expected at most 10000 characters" in many and 'Did you mean "dump"' in typo
        assert 'Did you mean "dump"' in plural and "y" * 60 in name and len(name) < 300 and "dump" in kind
        assert all(len(error) < 300 for error in agent.errors[:5])

    with_agent([runs], look)


def test_ranks_take_one_dump_or_those_of_several_machines(runs: Path) -> None:
    async def look(agent: Agent) -> None:
        one = await agent.ask("ranks", dump="mine")
        assert one == await agent.ask("ranks", dump=["mine"]) and "dump" not in agent.structured

    with_agent([runs], look)


def test_ranks_may_be_said_to_be_replicas(tmp_path: Path) -> None:
    change(make_replicas(tmp_path / "job"), 2, 7.0)

    async def look(agent: Agent) -> None:
        assert "nothing to compare" in await agent.ask("ranks", dump="job")
        found = await agent.ask("ranks", dump="job", replicated=True)
        assert found.startswith("rank 2 is outvoted, first in iteration 1: fc.weight")
        agreeing = await agent.ask("ranks", dump="job", iteration=0, replicated=True, details=True)
        assert "all of them are equal" in agreeing and agent.errors == []

    with_agent([tmp_path], look)


def test_the_answer_is_structured_content_as_well(runs: Path) -> None:
    async def look(agent: Agent) -> None:
        text = await agent.ask("first_nan", dump="mine")
        assert agent.structured == {"answer": text}

    with_agent([runs], look)


def test_a_query_has_a_bounded_memory_and_two_threads(runs: Path) -> None:
    pytest.importorskip("duckdb")

    async def look(agent: Agent) -> None:
        settings = "select current_setting('memory_limit') as m, current_setting('threads') as t"
        assert re.search(r"2\.0 GiB +[12]$", await agent.ask("sql", dump="mine", query=settings))
        await agent.ask("sql", dump="mine", query="set memory_limit = '9GiB'")
        assert len(agent.errors) == 1
        assert not list(Path().glob(".tmp*"))

    with_agent([runs], look)


def test_the_instructions_name_commands_and_tools() -> None:
    from msdump.cli.agents.server import _INSTRUCTIONS

    assert set(re.findall(r"`msdump (\w+)", _INSTRUCTIONS)) <= set(COMMANDS)
    assert set(re.findall(r"\b[a-z]+_[a-z]+\b", _INSTRUCTIONS)) < TOOLS and MOST == 8192
