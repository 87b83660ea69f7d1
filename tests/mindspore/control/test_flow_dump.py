"""The dump of a program with control flow: a graph for each part, a file for each run, nothing but what ran."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msdump
import msdump.mindspore as ms
from msdump.engine import opening
from msdump.formats.npy_reader import read_npy
from msdump.formats.paths.sync import parse_data_file_name
from msdump.formats.statistic_csv import read_statistic_csv
from msdump.mindspore import nn, ops
from msdump.process import sessions
from tests.mindspore.control.programs import load, programs
from tests.mindspore.first_graph import as_first_graph

Config = Callable[..., Path]


def configuration(path: Path, is_sync: bool, **changes: Any) -> dict[str, Any]:
    common = {
        "dump_mode": 0, "path": str(path / "dump"), "net_name": "Net", "iteration": "all", "input_output": 0,
        "kernels": [], "support_device": [0], "op_debug_mode": 0, "file_format": "npy", **changes,
    }  # fmt: skip
    return {"common_dump_settings": common, "e2e_dump_settings": {"enable": is_sync, "trans_flag": True}}


@pytest.fixture
def config(plain_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """Writes a configuration and names it in the environment; returns the folder of the dump."""

    def write(is_sync: bool = True, **changes: Any) -> Path:
        (plain_path / "dump.json").write_text(json.dumps(configuration(plain_path, is_sync, **changes)))
        monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", str(plain_path / "dump.json"))
        as_first_graph(monkeypatch)
        return plain_path / "dump"

    return write


def close() -> None:
    session = opening.current()
    assert session is not None
    session.close()
    assert session.error == ""


class Looping(nn.Cell):
    def construct(self, x: Any, n: Any) -> Any:
        y = x + 1
        i = n
        while i < 3:
            if y.sum() > 20:
                y = ops.exp(y) * 0.001
            else:
                y = y * 2
            i = i + 1
        return y - 5


def operators(folder: Path) -> dict[str, int]:
    """`graph/iteration` and operator -> how many times its output was written."""
    counts: Counter[str] = Counter()
    for path in folder.glob("*/*/*.output.0.*npy"):
        name = parse_data_file_name(path.name)
        assert name is not None
        if name.op_type != "Parameter":
            counts[f"{path.parent.parent.name}/{path.parent.name} {name.op_type}"] += 1
    return dict(counts)


def number_of(path: Path) -> int:
    """The graph that a file is of."""
    return int(path.stem.rpartition("_")[2])


def relative(place: str, first: int) -> str:
    """`place` with the number of its graph counted from `first`."""
    graph, slash, rest = place.partition("/")
    return f"{int(graph) - first}{slash}{rest}"


def test_graphs_and_folders_are_those_of_mindspore(config: Config) -> None:
    """Source: dumps of MindSpore 2.0: before the loop, condition, body, after the `if`, branches, after the loop."""
    root = config() / "rank_0"
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Looping()
    x = ms.Tensor(np.ones((2, 2), np.float32))
    for first in (0, 5):
        net(x, ms.Tensor(first, ms.int32))
    close()
    orders = sorted((root / "execution_order").glob("ms_execution_order_graph_*.csv"), key=number_of)
    first = number_of(orders[0])  # graphs are numbered through the process
    names = [[line.split("/")[-1].split("-")[0] for line in path.read_text().splitlines()[1:]] for path in orders]
    assert names == [["Add"], ["Less"], ["ReduceSum", "Greater"], ["Add"], ["Exp", "Mul"], ["Mul"], ["Sub"]]
    assert len(list((root / "graphs").glob("*.ir"))) == len(list((root / "graphs").glob("*.pb"))) == 7
    (history,) = (root / "execution_order").glob("ms_global_execution_order_graph_*.csv")
    assert number_of(history) == first
    assert history.read_text() == "0\n1\n"
    counts = {relative(place, first): count for place, count in operators(root / "Net").items()}
    assert counts == {
        "0/0 Add": 1, "1/0 Less": 4, "2/0 ReduceSum": 3, "2/0 Greater": 3, "3/0 Add": 3, "4/0 Exp": 1, "4/0 Mul": 1,
        "5/0 Mul": 2, "6/0 Sub": 1, "0/1 Add": 1, "1/1 Less": 1, "6/1 Sub": 1,
    }  # fmt: skip
    assert not (root / "Net" / f"{first + 2}" / "1").exists()
    text = (root / "graphs" / f"ms_output_trace_code_graph_{first + 4}.ir").read_text()
    assert f"test_flow_dump.py:{Looping.construct.__code__.co_firstlineno + 5}/" in text
    assert "if y.sum()" not in text


def tensors(folder: Path) -> Counter[tuple[str, str, int, bytes]]:
    """Operands of all operators by type, as often as they were written."""
    found: Counter[tuple[str, str, int, bytes]] = Counter()
    for path in folder.rglob("*.npy"):
        name = parse_data_file_name(path.name)
        if name is not None and name.op_type not in ("Parameter", *_ADDED):
            found[name.op_type, name.io, name.slot, read_npy(path).tobytes()] += 1
    return found


# What the graph computes and Python does not, or in Python's own numbers.
_ADDED = ("LogicalNot", "Cast", "Reshape", "Less", "Greater", "LessEqual", "GreaterEqual", "Add", "Sub", "Mul")


@settings(max_examples=8)
@given(programs(), st.integers(0, 3))
def test_every_engine_dumps_what_ran(tmp_path_factory: pytest.TempPathFactory, source: str, count: int) -> None:
    make = load(source)
    args = [ms.Tensor([0.5, -1.0]), ms.Tensor([1.0, 0.25]), ms.Tensor(count, ms.int32), ms.Tensor(1, ms.int32)]
    dumps = []
    for mode, is_sync in ((ms.PYNATIVE_MODE, True), (ms.GRAPH_MODE, True), (ms.GRAPH_MODE, False)):
        ms.set_context(mode=mode)
        path = tmp_path_factory.mktemp("flow")
        # The program writes a parameter: every engine starts from the same.
        net = make()
        with msdump.dump(configuration(path, is_sync)):
            net(*args)
        dumps.append(tensors(path))
        sessions.reset_for_tests()
    eager, sync, late = dumps
    assert sync == late
    assert not sync - eager


class Doubling(nn.Cell):
    def construct(self, x: Any, n: Any) -> Any:
        while n < 3:
            x = ops.exp(x * 2)
            n = n + 1
        return x


@pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])
def test_statistics_have_a_row_for_each_run_of_a_body(config: Config, is_sync: bool) -> None:
    root = config(is_sync, saved_data="statistic")
    ms.set_context(mode=ms.GRAPH_MODE, device_target="GPU" if is_sync else "Ascend")
    Doubling()(ms.Tensor(np.full(2, 0.25, np.float32)), ms.Tensor(0, ms.int32))
    close()
    values = [0.25]
    for _ in range(3):
        values += [values[-1] * 2, np.exp(np.float32(values[-1] * 2))]
    rows = [row for path in sorted(root.rglob("statistic.csv")) for row in read_statistic_csv(path)]
    maxima = [row.max for row in rows if row.op_type in ("Mul", "Exp") and row.io == "output"]
    np.testing.assert_allclose(np.array(maxima, float), values[1:], rtol=1e-4)


def test_an_overflow_in_a_later_run_of_a_body_is_found(config: Config) -> None:
    root = config(False, op_debug_mode=3)
    ms.set_context(mode=ms.GRAPH_MODE, device_target="Ascend")
    Doubling()(ms.Tensor(np.full(2, 1.25, np.float32)), ms.Tensor(0, ms.int32))
    session = opening.current()
    assert session is not None
    close()
    overflows = session.report().overflows
    assert overflows is not None
    assert [name.split("/")[-1].split("-")[0] for name in overflows] == ["Exp"]
    assert len(list(root.rglob("Exp.*.output.0.*"))) == 1


def test_marks_and_saved_graphs_reach_into_branches(config: Config, plain_path: Path) -> None:
    root = config(False, dump_mode=2)
    folder = plain_path / "graphs"
    ms.set_context(mode=ms.GRAPH_MODE, device_target="Ascend", save_graphs=3, save_graphs_path=str(folder))
    inner = nn.ReLU()

    class Outer(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.inner = inner

        def construct(self, x: Any) -> Any:
            if x.sum() > 0:
                x = self.inner(x)
            return x

    ms.set_dump(inner)
    Outer()(ms.Tensor([1.0, -0.5]))
    close()
    types = {name.op_type for path in root.rglob("*.npy") if (name := parse_data_file_name(path.name)) is not None}
    assert types == {"ReLU"}
    assert len(list(folder.glob("trace_code_graph_*.dot"))) == len(list(folder.glob("trace_code_graph_*.ir"))) > 1


class Stumbling(nn.Cell):
    def construct(self, x: Any, n: Any) -> Any:
        worst = x * 0
        while n < 3:
            if n == 1:
                y = ops.log(x - 2)
            else:
                y = ops.exp(x)
            worst = ops.select(ops.isnan(y), worst, y)
            n = n + 1
        return worst + 1


@pytest.mark.parametrize("saved_data", ["tensor", "statistic"])
@pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])
def test_a_nan_in_an_earlier_run_of_a_body_is_found(config: Config, is_sync: bool, saved_data: str) -> None:
    root = config(is_sync, saved_data=saved_data)
    ms.set_context(mode=ms.GRAPH_MODE, device_target="GPU" if is_sync else "Ascend")
    result = Stumbling()(ms.Tensor([0.5, 1.0]), ms.Tensor(0, ms.int32))
    close()
    assert np.isfinite(result.asnumpy()).all()
    report = msdump.find_nan(str(root))
    assert report.first_nan is not None
    assert (report.first_nan.operator.op_type, report.first_nan.how) == ("Log", "made")
    if is_sync:  # the asynchronous dump has no graph files
        assert report.first_nan.line is not None
        assert report.first_nan.line.code.strip() == "y = ops.log(x - 2)"
