"""`msdump plan`: exit status, and what a reader of its output learns."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import msdump.mindspore.kernels  # noqa: F401  (fills the registry)
from msdump.cli.main import main
from msdump.graph.graph import Graph, Parameter
from msdump.graph.pb import model_bytes
from msdump.graph.primitive import Primitive
from msdump.graph.types import TensorType
from msdump.mindspore.program.compile import finish


@pytest.fixture
def config(tmp_path):
    def write(**common) -> str:
        settings = {
            "dump_mode": 0,
            "path": "/dump",
            "net_name": "Net",
            "iteration": "0|2-4",
            "input_output": 0,
            "kernels": [],
            "support_device": [0],
            **common,
        }
        path = tmp_path / "data_dump.json"
        sections = {"common_dump_settings": settings, "e2e_dump_settings": {"enable": True, "trans_flag": True}}
        path.write_text(json.dumps(sections))
        return str(path)

    return write


@pytest.fixture
def graph_file(tmp_path) -> str:
    graph = Graph()
    x = graph.add_input("x", TensorType("float32", (256, 4)))
    weight = graph.add_parameter(Parameter("fc.weight", np.ones((256, 4), np.float32), "float32"))
    product = graph.add_node(Primitive("Mul"), (x, weight), "Default/fc-Dense").outputs[0]
    graph.outputs = [graph.add_node(Primitive("Exp"), (product,), "Default/act-Exp").outputs[0]]
    path = tmp_path / "ms_output_trace_code_graph_0.pb"
    path.write_bytes(model_bytes(finish(graph)))
    return str(path)


def test_a_right_configuration_in_words(config, capsys):
    assert main(["plan", config()]) == 0
    out, err = capsys.readouterr()
    assert "iterations     0|2-4 (4 iterations)\n" in out
    assert "/dump/rank_0/Net/<graph>/<iteration>" in out and not err


def test_a_wrong_configuration_is_told_on_stderr(config, capsys):
    assert main(["plan", config(net_name="my net")]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith("msdump plan: net_name only supports alphabetic, digit, or {'-', '_'}, but got: my net\n")
    assert "common_dump_settings.net_name: expected" in err


def test_numbers_for_a_graph(config, graph_file, capsys):
    assert main(["plan", config(), "--graph", graph_file]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "kernel_graph_0: 2 of 2 operators will be dumped" in lines
    assert ["Mul", "1", "1", "3", "12", "KiB"] in [line.split() for line in lines]
    assert ["Parameter", "2", "2", "2", "8", "KiB"] in [line.split() for line in lines]
    # x, weight, product, result: 4 KiB each
    assert "per iteration   7 tensors, 4 of them different: 28 KiB named, 16 KiB on disk" in lines
    assert "all iterations  4 times that: 64 KiB on disk" in lines


def test_statistics_are_rows_not_bytes(config, graph_file, capsys):
    assert main(["plan", config(saved_data="statistic"), "--graph", graph_file]) == 0
    assert "7 tensors, 4 of them different: one row of statistic.csv each" in capsys.readouterr().out


def test_what_never_matches_sets_the_exit_status(config, graph_file, capsys):
    path = config(dump_mode=1, kernels=["mul", "Expp"])
    assert main(["plan", path]) == 0
    assert main(["plan", path, "--graph", graph_file, "--graph", graph_file]) == 3
    out = capsys.readouterr().out
    assert 'never matches: "Expp" matches no operator of the graph. Did you mean "Exp"?' in out
    assert "kernel_graph_0: 1 of 2 operators will be dumped" in out


def test_nothing_to_dump_sets_the_exit_status(config, capsys):
    assert main(["plan", config(dump_mode=1, kernels=[])]) == 3
    assert main(["plan", config(), "--device-target", "GPU", "--device-id", "3"]) == 3
    assert "device 3 is not in support_device" in capsys.readouterr().out


def test_the_environment_counts(config, monkeypatch, capsys):
    monkeypatch.setenv("MS_DIAGNOSTIC_DATA_PATH", "/diagnostic")
    monkeypatch.setenv("RANK_ID", "5")
    assert main(["plan", config(path="")]) == 0
    assert "/diagnostic/debug_dump/rank_5/Net" in capsys.readouterr().out
    monkeypatch.setenv("MSDUMP_STRICT", "1")
    assert main(["plan", config(saved_data="full")]) == 2
    assert "storing statistic dump is only supported on GPU and Ascend" in capsys.readouterr().err


def test_graph_files_that_are_none(config, tmp_path, capsys):
    (tmp_path / "bad.pb").write_bytes(b"\xff\xff\xff")
    assert main(["plan", config(), "--graph", str(tmp_path / "bad.pb")]) == 2
    assert main(["plan", config(), "--graph", str(tmp_path / "none.pb")]) == 2
    out, err = capsys.readouterr()
    assert not out and "bad.pb: expected a debugger.ModelProto" in err and "none.pb: expected a graph file" in err


def test_no_name_at_all(capsys):
    assert main(["plan", ""]) == 2
    assert "CONFIG: expected a file name" in capsys.readouterr().err


def test_a_terminal_gets_tables(config, graph_file, capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["plan", config(dump_mode=1, kernels=["[red]mul"]), "--graph", graph_file]) == 3
    out = capsys.readouterr().out
    assert '"[red]mul"' in out and "op type" not in out
    assert main(["plan", config(), "--graph", graph_file]) == 0
    out = capsys.readouterr().out
    assert "op type" in out and "Mul" in out and "per iteration" in out


def test_limits_of_the_environment_are_read(config, graph_file, monkeypatch, capsys):
    monkeypatch.setenv("MSDUMP_DISK_BUDGET", "20K")
    monkeypatch.setenv("MSDUMP_KEEP_ITERATIONS", "7")
    assert main(["plan", config(), "--graph", graph_file]) == 0
    out = capsys.readouterr().out
    assert "at most 20 KiB in all (MSDUMP_DISK_BUDGET)" in out
    assert "the last 7 iterations are kept (MSDUMP_KEEP_ITERATIONS)" in out
    assert "the dump may write 20 KiB" in out
    assert "20 KiB, 1 iteration: then the dump ends" in out
    monkeypatch.setenv("MSDUMP_DISK_FLOOR", "little")
    assert main(["plan", config()]) == 2
    assert "environment variable MSDUMP_DISK_FLOOR" in capsys.readouterr().err


def test_a_path_that_cannot_be_made(config, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "below"
    assert main(["plan", config(path=str(path))]) == 2
    out, err = capsys.readouterr()
    assert "iterations     0|2-4" in out
    assert (
        f"path: {path}/rank_0: expected a folder that can be made, got none: {tmp_path}/file above it is a file" in err
    )
    assert main(["plan", config(path=str(tmp_path / "new" / "folder"))]) == 0
    assert not (tmp_path / "new").exists()
