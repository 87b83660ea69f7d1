"""`msdump ls` counts what lies there, names what is damaged, and says what to ask next."""

from __future__ import annotations

import json
import os
import shlex

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msdump.analysis import list_dump, tensor_statistics, write_statistic_files
from msdump.cli.main import main
from msdump.config.environment import format_size
from msdump.process.default_folder import CLAIM_FILE, claim_folder
from tests.analysis.small_dump import floats, write_dump

IN, OUT = ("input", 0), ("output", 0)
OPERATORS = [("Net/Log-op0", {IN: floats(1, 2), OUT: floats(3, 4)}), ("Net/Exp-op1", {OUT: floats(5)})]


@pytest.fixture
def dump(tmp_path):
    for rank in (0, 1):
        for iteration in (0, 3):
            write_dump(tmp_path / "dump", OPERATORS, iteration=iteration, rank=rank)
    return tmp_path / "dump"


def answer(capsys, *arguments):
    status = main(["ls", *map(str, arguments), "--json", "-"])
    return status, json.loads(capsys.readouterr().out)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 4)), min_size=1, max_size=5, unique=True)
)
def test_counts_are_those_of_the_statistics(tmp_path_factory, steps):
    root = tmp_path_factory.mktemp("dump")
    for rank, graph, iteration in steps:
        write_dump(root, OPERATORS, iteration=iteration, graph=graph, rank=rank)
    listing = list_dump(root)
    rows = tensor_statistics(root).rows
    assert sum(step.tensor_count for step in listing.steps) == len(rows)
    assert sum(step.size_bytes for step in listing.steps) == sum(row.tensor.size_bytes for row in rows)
    assert [tuple(step.key) for step in listing.steps] == sorted(steps)


def test_what_is_there_as_json_and_as_text(dump, capsys):
    status, value = answer(capsys, dump)
    assert status == 0
    assert (value["ranks"], value["graphs"], value["iterations"]) == ([0, 1], [0], [0, 3])
    assert value["steps"][1] == {
        "step": [0, 0, 3], "model": "Net", "operators": 2, "tensors": 3, "size_bytes": 20, "is_statistic": False,
    }  # fmt: skip
    assert main(["ls", str(dump), "--rank", "1"]) == 0
    out = capsys.readouterr().out
    assert "1 rank (1), 1 graph (0), 2 iterations (0|3), 4 operators, 6 tensors of 40 B, " in out
    folder = shlex.quote(str(dump))
    assert f"msdump nan {folder}" in out and f"msdump show {folder} Log-op0" in out


def test_many_steps_are_cut(tmp_path, capsys):
    for iteration in range(0, 60, 2):
        write_dump(tmp_path, OPERATORS[1:], iteration=iteration)
    assert main(["ls", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "\n10 more (--all)\n" in out and "30 iterations (0|2|4" in out and "...)" in out
    assert main(["ls", str(tmp_path), "--all"]) == 0
    assert "more (--all)" not in capsys.readouterr().out


def test_damaged_and_foreign_files_are_named(dump, capsys):
    broken = sorted(dump.rglob("*.input.0.*"))[0]
    broken.write_bytes(b"no tensor")
    (broken.parent / "notes.md").write_text("mine")
    status, value = answer(capsys, dump)
    assert status == 4
    assert [file for file, _ in value["damaged"]] == [str(broken)]
    assert value["foreign"] == [str(broken.parent / "notes.md")]
    assert main(["ls", str(dump)]) == 4
    err = capsys.readouterr().err
    assert "damaged: " in err and "foreign: " in err and "notes.md: no file of a dump" in err


def test_statistics_alone(dump, tmp_path, capsys):
    assert main(["stat", str(dump), "--csv", str(tmp_path / "stat")]) == 0
    capsys.readouterr()
    status, value = answer(capsys, tmp_path / "stat")
    assert status == 0
    assert {(step["tensors"], step["size_bytes"], step["is_statistic"]) for step in value["steps"]} == {(3, 0, True)}
    assert main(["ls", str(tmp_path / "stat")]) == 0
    out = capsys.readouterr().out
    assert "statistics" in out and "msdump stat" in out and "msdump show" not in out


def test_nothing_to_list(tmp_path, capsys):
    assert main(["ls", str(tmp_path)]) == 3
    assert main(["ls", str(tmp_path / "missing")]) == 2
    assert "expected tensors or statistics" in capsys.readouterr().err


def test_names_stay_text(tmp_path, capsys):
    write_dump(tmp_path, [("Net/Log-op0", {OUT: np.zeros(2, np.float32)})])
    (tmp_path / "rank_0/Net/0/0/\x1b[31m").write_text("mine")
    assert main(["ls", str(tmp_path)]) == 0
    err = capsys.readouterr().err
    assert "\x1b" not in err and "\\x1b[31m" in err


def test_the_size_on_disk_is_that_of_the_files(dump, capsys):
    first = sorted(dump.rglob("*.input.0.*"))[0]
    os.link(first, first.with_name(first.name.replace(".input.0.", ".input.1.")))
    on_disk = {path.stat().st_ino: path.stat().st_size for path in dump.rglob("*") if path.is_file()}
    status, value = answer(capsys, dump)
    assert (status, value["disk_bytes"]) == (0, sum(on_disk.values()))
    written, _ = write_statistic_files(dump, dump.parent / "statistics")
    status, value = answer(capsys, dump.parent / "statistics")
    assert (status, value["disk_bytes"]) == (0, sum(path.stat().st_size for path in written))
    assert main(["ls", str(dump.parent / "statistics")]) == 0
    first_lines = capsys.readouterr().out.splitlines()[1]
    assert f"tensors, {format_size(value['disk_bytes'])} on disk" in first_lines and "0 B" not in first_lines


def test_the_file_that_claims_a_folder_is_no_foreign_one(tmp_path, capsys):
    folder = claim_folder(tmp_path / "msdump_dump", {})
    (folder / f"{CLAIM_FILE}.0123").write_text("another rank takes it now")
    write_dump(folder, OPERATORS)
    assert answer(capsys, folder)[1]["foreign"] == []
