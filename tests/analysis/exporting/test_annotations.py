"""Annotations: on the right line, escaped by the rules of their readers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.analysis.exporting.annotations import github_commands, sarif
from msdump.analysis.overview.findings import KINDS, Finding
from msdump.analysis.steps import Operator, StepKey
from msdump.cli.main import main
from msdump.graph.types import SourceLine
from msdump.tables.printable import printable
from tests.analysis.exporting.conftest import NAN_LINE

TEXTS = st.text(st.characters() | st.sampled_from("%:,\r\n{}[]()\x1b\u202e\udcff"), max_size=40)
# The runner reads a property up to the next comma and turns these back, %25 last.
UNESCAPED = (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%"))
COMMAND = re.compile(r"::error ([^:\n]*)::([^\n]*)\n")


@st.composite
def findings(draw: st.DrawFn) -> Finding:
    line = draw(st.none() | st.builds(SourceLine, TEXTS.filter(bool), st.integers(1, 10**9), TEXTS))
    operator = Operator("Log", draw(TEXTS.filter(bool)))
    return Finding(draw(st.sampled_from(list(KINDS))), draw(TEXTS), draw(TEXTS), StepKey(0, 0, 0), operator, line)


def unescaped(text: str) -> str:
    for escape, letter in UNESCAPED:
        text = text.replace(escape, letter)
    return text


@given(st.lists(findings(), max_size=3))
def test_github_reads_one_command_for_each_finding_and_nothing_else(found: list[Finding]) -> None:
    text = github_commands(found)
    commands = COMMAND.findall(text)
    assert "".join(f"::error {head}::{body}\n" for head, body in commands) == text
    assert len(text.splitlines()) == len(commands) == len(found)
    for finding, (head, body) in zip(found, commands, strict=True):
        properties = dict(part.split("=", 1) for part in head.split(","))
        assert unescaped(properties.pop("title")) == printable(finding.title, "\n")
        assert unescaped(body) == printable(finding.text, "\n")
        if finding.line is not None:
            assert properties.pop("line") == str(finding.line.line) and unescaped(properties.pop("file"))
        assert not properties


@given(st.lists(findings(), max_size=3))
def test_sarif_keeps_names_as_text(found: list[Finding]) -> None:
    log = json.loads(sarif(found))
    results = log["runs"][0]["results"]
    assert [result["ruleId"] for result in results] == [finding.kind for finding in found]
    for finding, result in zip(found, results, strict=True):
        text = result["message"]["text"]
        assert "](" not in text and not re.search(r"(?<!\{)(\{\{)*\{(?!\{)", text)
        place = result["locations"][0].get("physicalLocation")
        assert (place is None) == (finding.line is None)
        if place is not None:
            uri = place["artifactLocation"]["uri"]
            assert re.fullmatch(r"[A-Za-z0-9_.~%/:-]+", uri) and (unquote(uri) or True)


def test_they_name_the_line_that_made_the_nan(
    nan_dump: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(nan_dump.parent)
    assert main(["export", str(nan_dump), "--to", "github"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"::error file=train.py,line={NAN_LINE},title=first NaN%3A ") and out.count("\n") == 1
    assert "36 NaN, 0 Inf%0Ainfects 14 operators" in out
    assert main(["export", str(nan_dump), "--to", "sarif"]) == 0
    (result,) = json.loads(Path("dump.sarif").read_text())["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "train.py", "uriBaseId": "SRCROOT"}
    assert place["region"] == {"startLine": NAN_LINE, "snippet": {"text": "        x = self.middle(x)"}}


def test_a_golden_dump_adds_the_first_difference(
    moved_dump: Path, golden_dump_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(moved_dump), str(golden_dump_folder), "--to", "github", "-o", "-"]) == 0
    out = capsys.readouterr().out
    assert f",line={NAN_LINE + 1},title=first difference%3A " in out and "fc2.weight" in out
    assert main(["export", str(moved_dump), str(moved_dump), "--to", "github", "-o", "-"]) == 0
    assert capsys.readouterr().out == ""


def test_hostile_names_stay_text_and_say_that_they_have_no_line(
    hostile_dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(hostile_dump), "--to", "github"]) == 0
    printed = capsys.readouterr()
    assert COMMAND.fullmatch(printed.out) and "has no source line of it" in printed.err
    assert printed.out.replace("\n", "").isprintable()
