"""What MindSpore's own tests of Dump (tests/st/dump) expect: it holds, or docs/compatibility.md says why not."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.engine import opening
from msdump.mindspore import Tensor, context, nn, ops
from tests.mindspore.first_graph import as_first_graph

ROOT = Path(__file__).resolve().parents[2]
X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
Y = X + 6
DEVICES = ("CPU", "GPU", "Ascend")
Dumping = Callable[..., Path]


class Sum(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.add = ops.Add()

    def construct(self, x_: Tensor, y_: Tensor) -> Any:
        return self.add(x_, y_)


class Choice(nn.Cell):
    """A branch on values of tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.add = ops.AddN()

    def construct(self, low: Tensor, high: Tensor, x: Tensor, y: Tensor) -> Any:
        if low < high:
            z = self.add([x, y, y])
        else:
            z = self.add([x, x, y])
        return z


class Convolution(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = ops.Conv2D(out_channel=3, kernel_size=1)

    def construct(self, x: Tensor, weight: Tensor) -> Any:
        return self.convolution(x, weight)


@pytest.fixture
def dumping(plain_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dumping:
    """Switches Dump on for a device, with changes to the settings, and returns the folder of the dump.

    is_synchronous   or the settings of the synchronous dump
    """

    def start(device: str, is_synchronous: bool | dict[str, Any] = True, **changes: Any) -> Path:
        common = {
            "dump_mode": 0, "path": str(plain_path / "dump"), "net_name": "Net", "iteration": "0", "input_output": 0,
            "kernels": ["Default/Conv-op12"], "support_device": list(range(8)), "op_debug_mode": 0, **changes,
        }  # fmt: skip
        config: dict[str, Any] = {"common_dump_settings": common}
        if is_synchronous:
            own = is_synchronous if isinstance(is_synchronous, dict) else {}
            config["e2e_dump_settings"] = {"enable": True, "trans_flag": False, **own}
        (plain_path / "dump.json").write_text(json.dumps(config))
        monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", str(plain_path / "dump.json"))
        as_first_graph(monkeypatch)
        context.set_context(mode=context.GRAPH_MODE, device_target=device)
        return plain_path / "dump"

    return start


def close() -> None:
    """Wait for what an asynchronous dump has still to write."""
    session = opening.current()
    assert session is not None
    session.close()


def names(folder: Path) -> list[str]:
    """Operator types and names of the files, with io and slot where the name has them."""
    parts = [path.name.split(".") for path in folder.iterdir() if path.is_file()]
    return sorted(".".join([*each[:2], *each[5:7]]) for each in parts)


def deviation(point: str) -> str:
    """The row of the page for a point where msdump differs."""
    page = (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8")
    section = page.partition("## What MindSpore's own tests expect")[2].partition("\n## ")[0]
    (row,) = [line for line in section.splitlines() if line.startswith(f"| {point} |")]
    assert "test_" in row, "the row names the test"
    return row


# -- the synchronous dump ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
def test_files_of_one_operator(device: str, dumping: Dumping) -> None:
    root = dumping(device) / "rank_0"
    Sum()(Tensor(X), Tensor(Y))
    (result,) = (root / "Net/0/0").glob("Add.Add-op*.0.0.*.output.0.DefaultFormat.npy")
    assert np.load(result).dtype == np.float32 and np.load(result).tolist() == (X + Y).tolist()
    assert len(list((root / "execution_order").iterdir())) == 2
    assert {path.suffix for path in (root / "graphs").iterdir()} == {".ir", ".pb"}
    assert names(root / "Net/0/0") == [
        "Add.Add-op0.input.0", "Add.Add-op0.input.1", "Add.Add-op0.output.0",
        "Parameter.x_.output.0", "Parameter.y_.output.0",
    ]  # fmt: skip
    assert "3 on a GPU and an Ascend" in deviation("inputs of a graph, synchronous")
    assert "`Add.Add-op0`" in deviation("names in the synchronous dump")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("is_strict", [False, True])
def test_the_rank_of_the_environment(
    device: str, is_strict: bool, dumping: Dumping, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK_TABLE_FILE", "invalid_file.json")
    monkeypatch.setenv("RANK_ID", "4")
    if is_strict:
        monkeypatch.setenv("MSDUMP_STRICT", "1")
    root = dumping(device)
    Sum()(Tensor(X), Tensor(Y))
    assert [path.name for path in root.glob("rank_*")] == ["rank_0" if is_strict else "rank_4"]
    assert "`rank_4`" in deviation("`RANK_ID=4` on one device")


def test_a_path_of_the_environment(dumping: Dumping, plain_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MS_DIAGNOSTIC_DATA_PATH", str(plain_path / "data"))
    dumping("GPU", path="")
    Sum()(Tensor(X), Tensor(Y))
    assert (plain_path / "data/debug_dump/rank_0/Net/0/0").is_dir()


@pytest.mark.parametrize("saved", ["tensor", "statistic", "full"])
def test_statistics_of_one_operator(saved: str, dumping: Dumping) -> None:
    folder = dumping("GPU", saved_data=saved) / "rank_0/Net/0/0"
    Sum()(Tensor(X), Tensor(Y))
    assert (folder / "statistic.csv").is_file() == (saved != "tensor")
    assert bool(list(folder.glob("*.npy"))) == (saved != "statistic")
    if saved == "tensor":
        return
    with (folder / "statistic.csv").open() as file:
        found = {
            (row["IO"], row["Slot"]): (row["Min Value"], row["Max Value"], row["MD5"])
            for row in csv.DictReader(file)
            if row["Op Type"] == "Add"
        }
    assert found == {
        ("input", "0"): ("1", "6", "fa85978152c7dfb5f1322082915cb050"),
        ("input", "1"): ("7", "12", "9fd3b07ba2cfea7833f1da3a2960aadd"),
        ("output", "0"): ("8", "18", "72bb57525231b5c8d3176bc5497f8aa0"),
    }


def test_statistics_of_nothing_are_null(dumping: Dumping) -> None:
    root = dumping("GPU", saved_data="statistic") / "rank_0"
    Sum()(*(Tensor(np.array([], np.float16)) for _ in range(2)))
    with (root / "Net/0/0/statistic.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert row["IO"] == "output" and {row[f"{name} Value"] for name in ("Min", "Max", "Avg")} == {"null"}


@pytest.mark.parametrize("device", ["GPU", "Ascend"])
def test_a_constant_has_one_file(device: str, dumping: Dumping) -> None:
    class Constant(nn.Cell):
        def construct(self, x_: Tensor) -> Any:
            return ops.relu(Tensor(np.array(ops.shape(x_))))

    root = dumping(device) / "rank_0"
    result = Constant()(Tensor(np.ones((1, 2, 3), np.float32)))
    (path,) = (root / "Net/0/constants").iterdir()
    assert path.match("Parameter.data-*.0.0.*.DefaultFormat.npy")
    assert np.load(path).tolist() == result.asnumpy().tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("is_host", "form", "shape"), [(True, "DefaultFormat", (1, 3, 3, 3)), (False, "NC1HWC0", (1, 1, 3, 3, 16))]
)
def test_a_convolution_in_the_form_of_the_host_or_the_device(
    is_host: bool, form: str, shape: tuple[int, ...], dumping: Dumping
) -> None:
    root = dumping("Ascend", is_synchronous={"trans_flag": is_host}) / "rank_0"
    Convolution()(Tensor(np.ones((1, 3, 3, 3), np.float32)), Tensor(np.ones((3, 3, 1, 1), np.float32)))
    (result,) = (root / "Net/0/0").glob(f"Conv2D.Conv2D-op*.0.0.*.output.0.{form}.npy")
    assert np.load(result).shape == shape and np.load(result).sum() == 3 * 3 * 3 * 3


@pytest.mark.parametrize("mode", ["host", "device"])
def test_norms_that_the_host_or_the_device_computes(mode: str, dumping: Dumping) -> None:
    category = {"saved_data": "statistic", "statistic_category": ["max", "min", "l2norm"]}
    root = dumping("Ascend", is_synchronous={"stat_calc_mode": mode}, **category) / "rank_0"
    Sum()(Tensor(np.array([1, 2, 3], np.float32)), Tensor(np.array([2, 2, -10], np.float32)))
    with (root / "Net/0/0/statistic.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["Op Type"] == "Add"]
    found = [(row["Min Value"], row["Max Value"], round(float(row["L2Norm Value"]), 3)) for row in rows]
    assert sorted(found) == [("-10", "2", 10.392), ("-7", "4", 8.602), ("1", "3", 3.742)]


@pytest.mark.parametrize("saved", ["tensor", "statistic"])
def test_shapes_that_are_open(saved: str, dumping: Dumping) -> None:
    """A dataset whose rows become longer is sunk; the first of its steps is dumped."""
    root = dumping("Ascend", saved_data=saved, statistic_category=["l2norm", "max"]) / "rank_0"
    open_shape = Tensor(shape=[32, None], dtype=ms.float32)
    network = Sum()
    network.set_inputs(open_shape, open_shape)
    rows = [(np.ones((32, 2 * size), np.float32),) * 2 for size in (1, 2, 3)]
    data = ms.dataset.GeneratorDataset(rows, ["x", "y"], shuffle=False)
    ms.train.Model(network).train(2, data, dataset_sink_mode=True)
    assert {path.name for path in (root / "Net").iterdir()} == {"0"}
    if saved == "tensor":
        (result,) = (root / "Net/0/0").glob("Add.Add-op*.output.0.DefaultFormat.npy")
        assert np.array_equal(np.load(result), np.full((32, 2), 2, np.float32))
    else:
        with (root / "Net/0/0/statistic.csv").open() as file:
            norms = [(row["Max Value"], row["L2Norm Value"]) for row in csv.DictReader(file) if row["Op Type"] == "Add"]
        assert sorted(norms) == [("1", "8"), ("1", "8"), ("2", "16")]
    assert "`Net/1/0` for all shapes" in deviation("graphs of open dimensions")


@pytest.mark.parametrize("device", DEVICES)
def test_two_root_graphs_count_together(device: str, dumping: Dumping) -> None:
    root = dumping(device, iteration="all") / "rank_0"
    plain, branching = Sum(), Choice()
    low, high = Tensor(np.float32(1)), Tensor(np.float32(3))
    x = y = Tensor(np.ones((2, 1, 2, 1), np.float32))
    for _ in range(3):
        branching(low, high, plain(x, y), x)
        x, low = x + y, low + 1
    folders = {graph.name: sorted(step.name for step in graph.iterdir()) for graph in (root / "Net").iterdir()}
    # The branch of graph 2 is taken twice, that of graph 3 once.
    assert folders == {"0": ["0", "2", "4"], "1": ["1", "3", "5"], "2": ["1", "3"], "3": ["5"]}
    histories = {
        path.stem[-1]: path.read_text().split() for path in root.rglob("ms_global_execution_order_graph_*.csv")
    }
    assert histories == {"0": ["0", "2", "4"], "1": ["1", "3", "5"]}
    assert len(list((root / "execution_order").glob("ms_execution_order_graph_*.csv"))) == 4
    assert "on a GPU a file for each" in deviation("history of the graphs of branches")
    assert "root graphs alone" in deviation("folders of the graphs of branches")


# -- the asynchronous dump ---------------------------------------------------------------------------------------------


def test_a_graph_through_ge(dumping: Dumping) -> None:
    root = dumping("Ascend", is_synchronous=False, file_format="npy", saved_data="full")
    result = Sum()(Tensor(X), Tensor(Y))
    close()
    # {time}/{device_id}/{model_name}/{model_id}/{iteration_id}
    (folder,) = (path for path in root.glob("*/*/*/*/*") if path.is_dir())
    time, device, _, _, iteration = folder.relative_to(root).parts
    assert len(time) == 14 and time.isdigit() and (device, iteration) == ("0", "0")
    found = {
        name: path
        for path in folder.glob("*.output.*.npy")
        for name in [path.name.rpartition("-op")[0] or path.name[:12]]
    }
    assert sorted(found) == ["Add.Add", "Parameter.x_", "Parameter.y_"]
    assert np.array_equal(np.load(found["Parameter.x_"]), X) and np.array_equal(np.load(found["Parameter.y_"]), Y)
    assert np.array_equal(np.load(found["Add.Add"]), result.asnumpy())
    assert "`Data.x_`" in deviation("inputs of a graph through GE")
    assert "`{time}/{device_id}/...`" in deviation("folders of the asynchronous dump")


def test_bfloat16_through_ge(dumping: Dumping) -> None:
    root = dumping("Ascend", is_synchronous=False, file_format="npy", saved_data="full")
    x = Tensor(np.array([1.1, 2.3, 3.7]), ms.bfloat16)
    ops.Mul()(x, x)
    Sum()(x, x)
    close()
    (path,) = root.rglob("Parameter.x_.*.npy")
    assert np.load(path).dtype == np.float32 and np.array_equal(np.load(path), x.asnumpy())
    with path.with_name("statistic.csv").open() as file:
        assert {row["Data Type"] for row in csv.DictReader(file)} == {"bfloat16"}


@pytest.mark.parametrize("is_saturated", [False, True])
@pytest.mark.parametrize("file_format", ["bin", "npy"])
def test_an_overflow_is_found(
    is_saturated: bool, file_format: str, dumping: Dumping, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_saturated:
        monkeypatch.setenv("INF_NAN_MODE_ENABLE", "0")
    root = dumping("Ascend", is_synchronous=False, op_debug_mode=3, file_format=file_format)
    big = Tensor(np.array([60000, 60000], np.float16))
    assert set(Sum()(big, big).asnumpy().tolist()) == {65504.0 if is_saturated else np.inf}
    close()
    (folder,) = {path.parent for path in root.rglob("*") if path.is_file() and path.parent != root}
    types = {path.name.partition(".")[0] for path in folder.iterdir()}
    assert types == {"Add", "Opdebug"}
    assert "±65504" in deviation("60000 + 60000 in float16")
    (debug,) = folder.glob("Opdebug.Node_OpDebug.*")
    (operator,) = {tuple(path.name.split(".")[2:4]) for path in folder.glob("Add.*")}
    assert tuple(debug.name.split(".")[2:4]) != operator
    assert "debug task" in deviation("numbers in the name of an overflow file")
    if file_format == "npy":
        core = json.loads(debug.read_text())["AI Core"]
        assert (str(core["task_id"]), str(core["stream_id"])) == operator


def test_without_an_overflow_nothing_is_written(dumping: Dumping) -> None:
    root = dumping("Ascend", is_synchronous=False, op_debug_mode=3)
    Sum()(Tensor(np.array([60000], np.float16)), Tensor(np.array([2], np.float16)))
    close()
    assert not [path for path in root.rglob("*") if path.is_file() and path.name.startswith(("Add", "Opdebug"))]


class Symbols(nn.Cell):
    def construct(self, x: Tensor) -> Any:
        return (ops.Add()(x, 1) - 1) / 1


class Reduced(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.relu, self.mean = ops.ReLU(), ops.ReduceMean()

    def construct(self, x: Tensor) -> Any:
        return self.relu(self.mean(self.relu(x), (2, 3)))


def test_marks(dumping: Dumping) -> None:
    root = dumping("Ascend", is_synchronous=False, dump_mode=2, input_output=2, iteration="all")
    symbols, reduced = Symbols(), Reduced()
    ms.set_dump(symbols)
    ms.set_dump(reduced.relu, enabled=False)
    ms.set_dump(reduced.mean)
    symbols(Tensor(np.ones(10, np.float32)))
    reduced(Tensor(np.ones((1, 2, 3, 3), np.float32)))
    close()
    types = sorted(path.name.partition(".")[0] for path in root.rglob("*") if path.is_file() and path.parent != root)
    assert types == ["Add", "Div", "ReduceMean", "Sub"]
    assert "`ReduceMeanD`" in deviation("operator types in the asynchronous dump")


def test_the_other_points_have_their_rows() -> None:
    assert "later key" in deviation("`save_kernel_args`")
    assert "no part of Dump" in deviation("code of the kernels")
    assert "refused" in deviation("a sum of complex numbers")
    with pytest.raises(TypeError):
        Sum()(*(Tensor(np.array([1 + 2j], np.complex64)) for _ in range(2)))
