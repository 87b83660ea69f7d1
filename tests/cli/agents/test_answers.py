"""Answers are bounded, and every line of a long one can be had."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

anyio = pytest.importorskip("anyio")

from msdump.cli.agents import answers  # noqa: E402
from msdump.cli.agents.answers import MOST_BYTES, Answers, NoAnswerError, cut  # noqa: E402
from tests.analysis.small_dump import floats, write_dump  # noqa: E402

OPERATORS = [("Net/Log-op0", {("input", 0): floats(1, -1), ("output", 0): floats(0, float("nan"))})]


def ask(*words: str, from_line: int = 1, timeout_s: float = 60) -> str:
    async def asked() -> str:
        return await Answers(timeout_s).ask(words, from_line=from_line)

    return anyio.run(asked)


@given(st.lists(st.text(max_size=40).map(lambda text: text.replace("\n", " ") * 60), min_size=1, max_size=30))
def test_parts_are_bounded_and_lose_no_line(lines: list[str]) -> None:
    text, line, seen = "\n".join(lines), 1, []
    while True:
        part = cut(text, line)
        assert (part.first, part.count) == (line, len(lines)) and part.last >= part.first
        assert len(json.dumps(part.text, ensure_ascii=False).encode(errors="backslashreplace")) < MOST_BYTES + 100
        seen += part.text.split("\n")
        if part.last == part.count:
            break
        line = part.last + 1
    assert len(seen) == len(lines)
    for shown, whole in zip(seen, lines, strict=True):
        assert shown == whole or " more letters of this line]" in shown or len(json.dumps(whole)) > MOST_BYTES


def test_the_rest_is_that_of_the_same_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_BYTES", 200)
    for iteration in range(5):
        write_dump(tmp_path, OPERATORS, iteration=iteration)
    words = ("ls", "--all", "--", str(tmp_path))

    async def read() -> tuple[str, str, str]:
        asked = Answers(60)
        first = await asked.ask(words)
        write_dump(tmp_path, OPERATORS, iteration=7)
        return first, await asked.ask(words, from_line=4), await asked.ask(words)

    first, second, again = anyio.run(read)
    count = first.rpartition(" of ")[2].partition(";")[0]
    assert "; the same call with from_line=" in first and "lines 4 to" in second and f"of {count}" in second
    assert f" of {count};" not in again


def test_what_is_wrong_has_its_exit_status(tmp_path: Path) -> None:
    dump = str(write_dump(tmp_path, OPERATORS))
    assert "(exit status 1: a NaN or an unexpected Inf was found, or " in ask("nan", "--", dump).splitlines()[-1]
    assert "exit status" not in ask("show", "--", dump, "Log-op0")


def test_a_command_that_fails_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NoAnswerError, match=r"got nothing\. Is it mounted"):
        ask("nan", "--", str(tmp_path / "nowhere"))


def test_a_command_that_takes_too_long_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_PROGRAM", "import time; time.sleep(60)")
    with pytest.raises(NoAnswerError, match=r"expected an answer in 2 s, got none\. Select fewer steps by rank"):
        ask("nan", timeout_s=2)


def test_a_command_that_is_killed_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_PROGRAM", "import os; os.kill(os.getpid(), 11)")
    with pytest.raises(NoAnswerError, match="was ended by SIGSEGV"):
        ask("nan")


def test_the_current_folder_holds_no_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is where an agent was started, perhaps among files of strangers."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "numpy.py").write_text("raise SystemExit('code of a stranger')\n")
    dump = str(write_dump(tmp_path / "dump", OPERATORS))
    assert ask("nan", "--", dump).startswith("first NaN")


def test_lines_are_whole_and_english(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("MSDUMP_LANGUAGE", "zh")
    assert (
        "(Log), rank 0, graph 0, iteration 0" in ask("nan", "--", str(write_dump(tmp_path, OPERATORS))).split("\n")[0]
    )
    assert sys.executable
