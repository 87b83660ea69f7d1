"""`save_graphs` and `DUMP_GE_GRAPH` write the files of each compiled graph; `jit_level` reaches the plan."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.engine import opening
from msdump.errors import ConfigError
from msdump.graph.listing import dot_text
from msdump.mindspore import Tensor, nn, ops
from tests.mindspore.networks import LeNet5, digits, graphs_of, rows, training_step


def trained() -> nn.Cell:
    net = LeNet5()
    step = training_step(net, nn.Momentum(net.trainable_params(), 0.01, 0.9))
    step(*digits())
    return step


KINDS = {0: [], 1: ["trace_code_graph.ir"], 2: ["graph_build.ir", "trace_code_graph.ir"]}
KINDS[3] = [*KINDS[2], "trace_code_graph.dot"]


@pytest.mark.parametrize("level", KINDS)
def test_levels(tmp_path: Path, level: int) -> None:
    folder = tmp_path / "new" / "folder"
    ms.set_context(mode=ms.GRAPH_MODE, save_graphs=level, save_graphs_path=str(folder))
    (graph,) = graphs_of(trained())
    names = sorted(path.name for path in folder.glob("*"))
    parts = [re.fullmatch(r"(\w+)_(\d+)_\d{4}(\.\w+)", name) for name in names]
    assert sorted(match[1] + match[3] for match in parts if match) == sorted(KINDS[level])
    assert {int(match[2]) for match in parts if match} <= {graph.graph_id}
    texts = {path.name.partition(f"_{graph.graph_id}_")[0]: path.read_text() for path in folder.glob("*.ir")}
    for node in graph.nodes:
        for kind in texts:
            name = node.full_name if kind == "trace_code_graph" else f"{node.scope}/{node.op_type}-op"
            assert f"# Fullname with scope: ({name}" in texts[kind]
    assert all(path.stat().st_mode & 0o777 == 0o400 for path in folder.glob("*"))


def test_graphs_are_numbered_through_the_process(tmp_path: Path) -> None:
    ms.set_context(mode=ms.GRAPH_MODE, save_graphs=1, save_graphs_path=str(tmp_path))
    net, (data, _) = nn.Dense(5, 2), rows()
    for size in (1, 2, 2, 3):
        net(data[:size])
    numbers = sorted(int(path.stem.rpartition("_")[2]) for path in tmp_path.glob("trace_code_graph_*.ir"))
    assert len(numbers) == 3 and numbers == list(range(min(numbers), min(numbers) + 3))


def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    ms.set_context(mode=ms.GRAPH_MODE, save_graphs=1, save_graphs_path=str(tmp_path / "file"))
    assert float(nn.ReLU()(Tensor(2.0))) == 2
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert caplog.text.count("save_graphs: ") == 1


def test_pictures_hold_every_operator_and_edge() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    (graph,) = graphs_of(trained())
    text = dot_text(graph)
    assert text.startswith(f'digraph "{graph.name}" {{\n') and text.endswith("}\n")
    assert len(re.findall(r"^  n\d+ \[label=", text, re.M)) == len(graph.nodes)
    edges = sum(len(node.inputs) for node in graph.nodes) + len(graph.outputs)
    assert text.count(" -> ") == edges
    assert all(f"\\n{node.full_name}\\n" in text for node in graph.nodes)


def test_files_of_the_graph_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUMP_GE_GRAPH", "2")
    monkeypatch.setenv("DUMP_GRAPH_PATH", str(tmp_path))
    ms.set_context(mode=ms.GRAPH_MODE)
    (graph,) = graphs_of(trained())
    names = sorted(path.name for path in tmp_path.iterdir())
    assert [name.partition("_graph_")[0] for name in names] == [
        "ge_onnx_00000", "ge_onnx_00001", "ge_proto_00000", "ge_proto_00001",
    ]  # fmt: skip
    assert "conv2-Conv2d" in (tmp_path / f"ge_proto_00001_graph_{graph.graph_id}_Build.txt").read_text()
    trained()
    assert len(list(tmp_path.iterdir())) == 8


def test_wrong_settings_of_the_graph_engine_fail_at_the_first_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUMP_GE_GRAPH", "9")
    ms.set_context(mode=ms.GRAPH_MODE)
    with pytest.raises(ConfigError, match="DUMP_GE_GRAPH"):
        nn.ReLU()(Tensor(1.0))


def _by_context() -> Any:
    ms.set_context(jit_config={"jit_level": "O0"})
    return nn.ReLU()


def _by_cell() -> Any:
    ms.set_context(jit_config={"jit_level": "O2"})
    net = nn.ReLU()
    net.set_jit_config(ms.JitConfig(jit_level="O0"))
    return net


def _by_function() -> Any:
    return ms.jit(ops.relu, jit_config=ms.JitConfig("O0"))


def _by_decorator() -> Any:
    @ms.jit(jit_level="O0")
    def function(x: Tensor) -> Any:
        return ops.relu(x)

    return function


WAYS = [_by_context, _by_cell, _by_function, _by_decorator]


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
@pytest.mark.parametrize("make", WAYS)
def test_jit_level_reaches_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, make: Any) -> None:
    common = {
        "dump_mode": 0, "path": str(tmp_path / "dump"), "net_name": "Net", "iteration": "0", "input_output": 0,
        "kernels": [], "support_device": [0],
    }  # fmt: skip
    (tmp_path / "dump.json").write_text(json.dumps({"common_dump_settings": common}))
    monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", str(tmp_path / "dump.json"))
    ms.set_context(mode=mode)
    make()(Tensor(np.ones(2, np.float32)))
    opened = opening.current()
    assert opened is not None and opened.plan.how.jit_level == "O0"
    opened.close()


def test_levels_that_do_not_exist_are_refused() -> None:
    message = r"must be one of \['O0', 'O1', 'O2'\], but got O7"
    for wrong in (
        lambda: ms.JitConfig(jit_level="O7"),
        lambda: ms.jit(ops.relu, jit_level="O7"),
        lambda: ms.set_context(jit_config={"jit_level": "O7"}),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()
    with pytest.raises(TypeError, match="expected a JitConfig, got str"):
        nn.ReLU().set_jit_config("O0")
    nn.ReLU().set_jit_config(ms.JitConfig(jit_level=""))


def test_the_ascend_profile_gives_device_formats() -> None:
    for mode, target, expected in ((0, "Ascend", "NC1HWC0"), (0, "CPU", "DefaultFormat")):
        ms.set_context(mode=mode, device_target=target)
        (graph,) = graphs_of(trained())
        assert graph.nodes[0].outputs[0].format == expected
