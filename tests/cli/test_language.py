"""Answers in Chinese: on a real terminal, in a pipe, and where only a program reads them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from msdump.cli.main import main
from tests.cli.test_terminal import on_terminal, places, too_wide

__all__ = ["places"]
# Line -> what its answer begins with.
ANSWERS = {
    "nan bad": "第一个意外的 Inf，由有限的输入产生：",
    "nan good": "全部有限：",
    "nan bad --brief": "第一个意外的 Inf，",
    "compare gelu good": "首个出错的算子：",
    "compare gelu good --brief": "首个出错的算子：",
    "compare good good": "一致：",
    "stat bad_statistics --golden good_statistics": "首个出错的算子：",
    "stat good --unchanged": "",
    "stat bad": "",
    "ranks job --jobs 1": "rank 2 与多数不符，",
    "ranks job --jobs 1 --brief": "rank 2 与多数不符，",
}
# Words of these answers that are the same in both languages: of formats, of statistics, of the dumps themselves.
SAME = (
    r"msdump .*|\S+\.py:\d+.*|\bNaN\b|\bInf\b|\bnan\b|\bid\b|\brank\b|\w+_inf|float32|L2|Dump|blocks[\w.]+|Tensor"
    r"|(Default|Gradients)/\S+|aten[._]\S+|--all|\bhead\b|\binput\b|approximate|tanh|none|dtype|\bnode\b|\S+@\S+"
)


@pytest.mark.parametrize("line", ANSWERS)
def test_an_answer_is_chinese_from_its_first_line_to_its_last(
    line: str, places: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(places)
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    main(line.split())
    answer = capsys.readouterr().out
    assert answer.startswith(ANSWERS[line])
    # A command and a line of code stand as they are.
    left = re.sub(SAME, "", answer)
    assert re.findall(r"[A-Za-z]{3,}", left) == []


@pytest.mark.parametrize("line", ["nan bad", "compare gelu good", "ranks job --jobs 1"])
def test_it_fits_a_terminal_of_80_columns(line: str, places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSDUMP_LANGUAGE", "zh")
    status, lines = on_terminal(places, line.split(), 80)
    assert status in (0, 1) and too_wide(lines, 80) == []
    assert any(text.startswith(ANSWERS[line][:20]) for text in lines)
    assert "下一步：" in lines


def test_a_program_reads_english(
    places: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(places)
    documents = []
    for language in ("en", "zh"):
        monkeypatch.setenv("MSDUMP_LANGUAGE", language)
        assert main(["compare", "gelu", "good", "--json", "-"]) == 1
        documents.append(capsys.readouterr().out)
    assert documents[0] == documents[1]
    assert json.loads(documents[1])["answer"][0].startswith("first wrong operator: ")


def test_what_a_stream_cannot_spell_is_english(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSDUMP_LANGUAGE", "zh")
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    _, lines = on_terminal(places, ["nan", "good"], 80)
    assert any(line.startswith("finite: ") for line in lines) and "next:" in lines


def test_another_language_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MSDUMP_LANGUAGE", "fr")
    assert main(["ls", "nowhere"]) == 2
    assert "MSDUMP_LANGUAGE: expected en or zh" in capsys.readouterr().err
