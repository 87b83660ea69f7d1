"""`msdump init`: whatever is answered, the file is one that `msdump plan` and the schemas take."""

from __future__ import annotations

import io
import itertools
import json
import sys
from pathlib import Path

import jsonschema
import pytest

from msdump.cli.init import QUESTIONS
from msdump.cli.main import main
from msdump.config.environment import BUDGET
from msdump.config.schema import acl_schema, mindspore_schema

HURTS, FRAMEWORKS, STEPS, SPACE, WHAT = QUESTIONS


@pytest.mark.parametrize("framework", FRAMEWORKS.choices)
@pytest.mark.parametrize("hurts", HURTS.choices)
def test_every_answer_gives_a_file_that_holds(
    hurts: str, framework: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(BUDGET, raising=False)
    for steps, saved in itertools.product(("0|5-8", "all", "unknown"), WHAT.choices):
        status = main(["init", "--force", "--answers", f"{hurts},{framework},{steps},1G,{saved}"])
        out, err = capsys.readouterr()
        if framework == "onnx" and steps == "unknown":
            assert status == 2 and "expected numbers for an ONNX model" in err
            continue
        assert (status, err) == (0, "")
        name = "acl.json" if framework == "onnx" else "dump.json"
        jsonschema.validate(
            json.loads(Path(name).read_text()), acl_schema() if name == "acl.json" else mindspore_schema()
        )
        assert f"$ msdump plan {name}" in out and f"now:   {BUDGET}=1G msdump " in out and "1 GiB" in out
        assert ("recorder  " in out) == (steps == "unknown")


def answered(text: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    return main(["init"])


def test_empty_lines_are_the_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert answered("\n\n\n\n\n", monkeypatch) == 0
    out = capsys.readouterr().out
    assert all(question.text in out for question in QUESTIONS)
    assert f"for {', '.join(question.default for question in QUESTIONS)}." in out
    common = json.loads(Path("dump.json").read_text())["common_dump_settings"]
    assert common["path"] == str(tmp_path / "dump") and common["iteration"] == "0"
    assert answered("\n\n\n\n\n", monkeypatch) == 2
    assert "dump.json: expected no such file yet" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "what hurts: expected an answer, got the end of input. For scripts there is --answers."),
        ("nan\nonnx\n", "steps: expected an answer, got the end of input"),
        ("nam\n", 'what hurts: expected one of nan, differs, ranks, look, got "nam". Did you mean "nan"?'),
        ("\n\n9-3\n", "steps: "),
        ("\n\n\nmuch\n", 'space: expected a size such as 8G or 512M, or any, got "much".'),
    ],
)
def test_bad_input_writes_nothing(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert answered(text, monkeypatch) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--answers", "nan"], "--answers: expected 5 answers, got 1"),
        (["--answers", ",,x,,"], "--answers: steps: "),
        (["--answers", ",,,,", "-o", "dump.txt"], "--output: expected a name that ends in .json"),
    ],
)
def test_wrong_options(
    options: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", *options]) == 2
    assert message in capsys.readouterr().err and list(tmp_path.iterdir()) == []
