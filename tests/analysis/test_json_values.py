"""JSON of any content is strict and of whole characters; the answers that need a dump with graph files."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msdump
from msdump.analysis.json_values import SCHEMA, json_text
from msdump.cli.main import main
from tests.documents import documented, strict

LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text()
    | st.sampled_from([np.float32("nan"), np.float64(1.5), np.int64(3), Path("a/b"), "\udcff", "\ud800", (1, 2)])
)  # fmt: skip


@given(st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12))
def test_any_content_becomes_strict_json_of_whole_characters(content):
    value = strict(json_text("x", {"content": content}))
    assert (value["schema"], value["msdump"], value["command"]) == (SCHEMA, msdump.__version__, "x")
    json.dumps(value, ensure_ascii=False).encode("utf-8")


@settings(max_examples=30)
@given(st.floats())
def test_numbers_come_back(number):
    value = strict(json_text("x", {"n": number}))["n"]
    assert float(value) == number or (math.isnan(number) and value == "nan")
    assert isinstance(value, float) == math.isfinite(number)


LINE = "x = self.relu(self.fc1(x))"


def test_operators_of_a_line(own_dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["where", str(own_dump), LINE, "--json", "-"]) == 0
    value = strict(capsys.readouterr().out)
    assert set(value) == documented("where")
    assert all(one["line"][2] == LINE and Path(one["files"][0]).is_file() for one in value["found"])
    assert main(["where", str(own_dump), "no such line", "--json", "-"]) == 3
    assert strict(capsys.readouterr().out)["found"] == []


def test_a_replay(own_dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(own_dump), "Conv2D-op0", "--json", "-"]) == 0
    value = strict(capsys.readouterr().out)
    assert set(value) == documented("replay")
    assert value["is_explained"] and value["runs"]["numpy"]["outputs"][0]["slot"] == "0"
