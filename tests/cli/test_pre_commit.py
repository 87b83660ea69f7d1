"""The hook that other repositories use is the command that is installed, and it takes the files that it is given."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from msdump.cli.main import main

ROOT = Path(__file__).parents[2]


def field(name: str) -> str:
    text = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    (value,) = re.findall(rf"^ +{name}: (.*)$", text, re.MULTILINE)
    return str(value)


@pytest.mark.parametrize(
    ("name", "is_meant"),
    [("data_dump.json", True), ("conf/acl.json", True), ("acl_fp16.json", True), ("package.json", False)],
)
def test_which_files_it_is_given(name: str, is_meant: bool) -> None:
    assert bool(re.search(field("files"), name)) == is_meant


def test_wrong_files_fail_and_right_ones_are_silent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, *arguments = shlex.split(field("entry"))
    assert program == "msdump"
    good = {"dump": {"dump_path": str(tmp_path), "dump_mode": "all", "dump_list": [{"model_name": "net"}]}}
    (tmp_path / "acl.json").write_text(json.dumps(good))
    (tmp_path / "data_dump.json").write_text('{"common_dump_settings": {"dump_mode": 7}}')
    assert main([*arguments, str(tmp_path / "acl.json")]) == 0
    assert capsys.readouterr().out == ""
    assert main([*arguments, str(tmp_path / "acl.json"), str(tmp_path / "data_dump.json")]) == 2
    told = capsys.readouterr()
    assert "data_dump.json" in told.out + told.err
