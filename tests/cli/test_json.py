"""Documents of `--json`: strict, alone on standard output, of the keys that docs/json.md has."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from msdump.cli.main import main
from tests.analysis.small_dump import floats, write_dump
from tests.documents import documented, strict

IN, OUT = ("input", 0), ("output", 0)


@pytest.fixture
def dump(tmp_path):
    operators = [
        ("Net/Log-op0", {IN: floats(-1, 1), OUT: floats(np.nan, 0)}),
        ("Net/Exp-op1", {IN: floats(np.nan, 0), OUT: floats(np.nan, 1)}),
    ]
    return write_dump(tmp_path / "dump", operators)


@pytest.fixture
def configuration(tmp_path):
    common = {
        "dump_mode": 0, "path": str(tmp_path / "out"), "net_name": "Net", "iteration": "all", "input_output": 0,
        "kernels": [], "support_device": [0],
    }  # fmt: skip
    path = tmp_path / "dump.json"
    path.write_text(
        json.dumps({"common_dump_settings": common, "e2e_dump_settings": {"enable": True, "trans_flag": True}})
    )
    return path


def commands(dump, configuration, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("print('mine')\n")
    return {
        "ls": ["ls", dump],
        "stat": ["stat", dump],
        "nan": ["nan", dump],
        "show": ["show", dump, "Log-op0"],
        "doctor": ["doctor", dump],
        "plot": ["plot", dump],
        "ranks": ["ranks", dump, "--jobs", "1"],
        "plan": ["plan", configuration],
        "convert": ["convert", dump, "-t", "bin", "-o", tmp_path / "converted"],
        "compare": ["compare", dump, dump],
        "run": ["run", "--no-dump", "--json", "-", script],
    }


@pytest.mark.parametrize(
    "command", ["ls", "stat", "nan", "show", "doctor", "plot", "ranks", "plan", "convert", "compare", "run"]
)
def test_a_document_is_alone_and_has_the_keys_of_the_page(command, dump, configuration, tmp_path, capsys):
    arguments = list(map(str, commands(dump, configuration, tmp_path)[command]))
    status = main(arguments if command == "run" else [*arguments, "--json", "-"])
    out = capsys.readouterr().out
    value = strict(out.removeprefix("mine\n"))
    assert set(value) == documented(command)
    assert value["command"] == command and status == (1 if command == "nan" else 0)
    assert out.startswith("mine\n") == (command == "run")


def test_a_file_leaves_the_text_where_it_is(dump, tmp_path, capsys):
    assert main(["nan", str(dump)]) == 1
    text = capsys.readouterr().out
    assert main(["nan", str(dump), "--json", str(tmp_path / "nan.json")]) == 1
    assert capsys.readouterr().out == text
    (origin,) = strict((tmp_path / "nan.json").read_text(encoding="utf-8"))["nan"]
    assert (origin["operator"], origin["how"], origin["tensors"][0]["nan"]) == ("Net/Log-op0", "made", 1)
    assert [one["operator"] for one in origin["infected"]] == ["Net/Exp-op1"]


def test_a_document_is_brief_unless_all_of_it_is_selected(tmp_path, capsys):
    golden = [(f"Net/Log-op{number}", {IN: floats(1), OUT: floats(1)}) for number in range(40)]
    mine = [(f"Net/Log-op{number}", {IN: floats(1), OUT: floats(np.nan if number > 9 else 1)}) for number in range(40)]
    folders = [str(write_dump(tmp_path / name, rows)) for name, rows in (("mine", mine), ("golden", golden))]
    compare, nan, stat = ["compare", *folders], ["nan", folders[0]], ["stat", folders[0]]

    def document(words):
        main([*words, "--json", "-"])
        return strict(capsys.readouterr().out)

    brief, whole = document(compare), document([*compare, "--all"])
    assert [one["id"] for one in brief["steps"][0]["operators"]] == [
        f"Log-op{number}@0.0.0" for number in range(10, 20)
    ]
    assert (brief["operators"], brief["differing"], brief["omitted"]) == (40, 30, {"steps.operators": 30})
    assert len(whole["steps"][0]["operators"]) == 40 and whole["omitted"] == {}
    first = document(nan)["nan"][0]
    assert first["id"] == "Log-op10@0.0.0" and len(first["also_made"]) == 3
    assert document(nan)["omitted"] == {"nan.also_made": len(document([*nan, "--all"])["nan"][0]["also_made"]) - 3}
    assert len(document(stat)["tensors"]) == 10 and document(stat)["omitted"] == {"tensors": 70}
    assert len(document([*stat, "--top", "30"])["tensors"]) == 30
    assert document(["show", folders[0], first["id"]])["operator"] == "Net/Log-op10"


def test_a_brief_answer_has_ten_findings_with_ids(tmp_path, capsys):
    for iteration in range(12):
        write_dump(tmp_path, [("Net/Log-op0", {IN: floats(1), OUT: floats(np.nan)})], iteration=iteration)
    assert main(["nan", str(tmp_path), "--brief"]) == 1
    first, alike, titles, *rows, more = capsys.readouterr().out.splitlines()
    assert first.startswith("first NaN, made out of finite inputs: Net/Log-op0") and titles.split() == ["verdict", "id"]
    assert alike == "in each row: how made"
    assert [row.split()[:2] for row in rows] == [["NaN", f"Log-op0@0.0.{number}"] for number in range(10)]
    assert more == "2 more (--all)"


def test_numbers_of_a_tensor_are_alike_in_stat_and_show(dump, capsys):
    assert main(["stat", str(dump), "--json", "-"]) == 0
    rows = strict(capsys.readouterr().out)["tensors"]
    assert main(["show", str(dump), "Log-op0", "--json", "-"]) == 0
    for shown in strict(capsys.readouterr().out)["tensors"]:
        (row,) = [row for row in rows if row["file"] == shown["file"]]
        assert {key: row[key] for key in shown if key in row} == {key: shown[key] for key in shown if key in row}
        assert row["l2norm"] == ("nan" if shown["nan"] else pytest.approx(math.sqrt(2)))


def test_damaged_files_are_in_the_document_and_on_standard_error(dump, capsys):
    (broken,) = dump.rglob("*Log*.input.0.*")
    broken.write_bytes(b"no tensor")
    for command, status in (("ls", 4), ("stat", 4), ("nan", 1)):
        assert main([command, str(dump), "--json", "-"]) == status
        out, err = capsys.readouterr()
        ((file, problem),) = strict(out)["damaged"]
        assert file == str(broken) and "expected" in problem
        assert "damaged: " in err


def test_several_configurations(configuration, tmp_path, capsys):
    wrong = tmp_path / "wrong.json"
    wrong.write_text(configuration.read_text().replace('"Net"', '"my net"'))
    assert main(["plan", str(configuration), str(wrong), "--json", "-"]) == 2
    first, second = strict(capsys.readouterr().out)["configurations"]
    assert (first["status"], second["status"], first["problem"]) == (0, 2, None)
    assert "net_name" in second["problem"] and ["iterations", "all"] in first["rows"]
    assert main(["plan", "-q", str(configuration), str(wrong)]) == 2
    out, err = capsys.readouterr()
    assert not out and err.startswith(f"msdump plan: {wrong}: net_name")
    assert main(["plan", "-q", str(configuration)]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_document_that_cannot_be_written(dump, tmp_path, capsys):
    assert main(["ls", str(dump), "--json", str(tmp_path / "missing/x.json")]) == 2
    assert "expected to write the result" in capsys.readouterr().err
