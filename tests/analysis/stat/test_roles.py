"""Parameter, layer and gradient of each row of the tables, for MindSpore and for PyTorch."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msdump.analysis import tensor_statistics, write_statistic_files
from msdump.analysis.stat.statistics import TensorStatistics
from msdump.cli.main import main
from msdump.formats.statistic_csv import read_statistic_csv
from tests.analysis.small_dump import write_dump

Rows = dict[tuple[str, str, int], TensorStatistics]


def rows_of(dump: Path, **options: Any) -> Rows:
    rows = tensor_statistics(dump, iteration=0, **options).rows
    return {(row.tensor.op_name, row.tensor.io, row.tensor.slot): row for row in rows}


@pytest.mark.parametrize("has_tensors", [True, False])
def test_an_update_of_mindspore_names_its_parameter_and_gradient(own_dump: Path, has_tensors: bool) -> None:
    dump = own_dump
    if not has_tensors:
        (dump,) = (own_dump / "rank_0/LeNet/0/0").glob("statistic.csv")
    rows = rows_of(dump)
    updates = [row for (name, io, slot), row in rows.items() if name.startswith("ApplyMomentum") and io == "output"]
    assert {row.role.parameter for row in updates} == {
        f"{layer}.{kind}" for layer in ("conv1", "conv2", "fc1", "fc2", "fc3") for kind in ("weight", "bias")
    } - {"conv1.bias", "conv2.bias"}
    assert not any(row.role.is_gradient for row in updates)
    for (name, io, slot), row in rows.items():
        if name.startswith("ApplyMomentum") and io == "input":
            weight = rows[name, "input", 0].role.parameter
            expected = {0: weight, 1: f"moments.{weight}", 3: weight}
            assert row.role.is_gradient == (slot == 3)
            assert slot not in expected or row.role.parameter == expected[slot]


def test_layers_and_gradients_of_mindspore(own_dump: Path) -> None:
    rows = rows_of(own_dump)
    for (name, io, slot), row in rows.items():
        if name.startswith("Conv2DBackpropFilter") and (io, slot) == ("output", 0):
            assert row.role.is_gradient and row.role.layer in ("conv1", "conv2")
            assert row.role.parameter == f"{row.role.layer}.weight"
        if name.startswith("Conv2D-") and (io, slot) == ("input", 1):
            assert row.role.parameter == f"{row.role.layer}.weight" and not row.role.is_gradient


def test_the_table_has_the_columns(own_dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stat", str(own_dump), "--iteration", "0", "--op-type", "ApplyMomentum", "--all"]) == 0
    captured = capsys.readouterr()
    assert " l2norm " in captured.out and "parameter fc1.weight" in captured.out and "is_gradient yes" in captured.out
    assert not captured.err


def test_a_table_without_norms_says_how_to_get_them(
    own_dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_statistic_files(own_dump, tmp_path)
    assert main(["stat", str(tmp_path)]) == 0
    assert "has no l2norm. Name l2norm in statistic_category" in capsys.readouterr().err


def test_complex_numbers_miss_no_norm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They have no statistics but their count, also in a file that has the column."""
    values = {("output", 0): np.ones(2, np.float32), ("output", 1): np.array([1j], np.complex64)}
    write_dump(tmp_path / "tensors", [("D/Fft-op1", values)])
    (path,), _ = write_statistic_files(tmp_path / "tensors", tmp_path / "statistics")
    title, *rows = path.read_text().splitlines()
    norms = ["null" if "complex" in row else "1.41421" for row in rows]
    path.chmod(0o600)
    path.write_text("\n".join([f"{title},L2Norm Value", *map(",".join, zip(rows, norms, strict=True)), ""]))
    assert main(["stat", str(tmp_path / "statistics")]) == 0
    captured = capsys.readouterr()
    assert "1.414" in captured.out and "complex64" in captured.out and not captured.err


def test_parquet_has_the_columns(own_dump: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert main(["stat", str(own_dump), "--parquet", str(tmp_path / "x.parquet")]) == 0
    table = parquet.read_table(tmp_path / "x.parquet").to_pydict()
    assert {"parameter", "layer", "is_gradient", "l2norm"} <= set(table)
    assert "fc1.weight" in table["parameter"] and True in table["is_gradient"] and None not in table["l2norm"]


@pytest.mark.parametrize("saved_data", ["tensor", "statistic"])
def test_torch_names_parameters_and_their_gradients(
    saved_data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    from msdump.frontends.torch import backend
    from tests.frontends.torch.dumping import close, configure

    class Net(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Linear(4, 3)
            self.frozen = torch.nn.Parameter(torch.ones(3), requires_grad=False)
            self.last = torch.nn.Linear(3, 3, bias=False)

        def forward(self, x: Any) -> Any:
            return self.last(torch.relu(self.first(x)) * self.frozen)

    torch._dynamo.reset()
    root = configure(tmp_path, monkeypatch, saved_data=saved_data)
    torch.compile(Net(), backend=backend)(torch.ones(2, 4)).sum().backward()
    close()
    rows = tensor_statistics(root).rows
    gradients = {
        row.role.parameter.rpartition("self.")[2]: row.shape
        for row in rows
        if row.role.is_gradient and row.role.parameter is not None and row.tensor.io == "output"
        and not row.tensor.is_parameter
    }  # fmt: skip
    assert gradients == {
        "first.weight": (3, 4), "first.bias": (3,), "last.weight": (3, 3),
    }  # fmt: skip
    layers = {row.role.layer for row in rows if not row.tensor.is_parameter}
    assert {"first", "last"} <= {str(layer).rpartition("self.")[2] for layer in layers}
    assert all(row.numbers.l2norm is not None for row in rows)
    if saved_data == "statistic":
        (path, *_) = root.rglob("statistic.csv")
        assert all(row.l2norm is not None for row in read_statistic_csv(path))


def test_the_table_of_differences_has_the_columns(
    own_dump: Path, perturbed_dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, dump in (("own", own_dump), ("perturbed", perturbed_dump)):
        write_statistic_files(dump, tmp_path / name)
        for kind in ("graphs", "execution_order"):
            shutil.copytree(dump / "rank_0" / kind, tmp_path / name / "rank_0" / kind)
    assert main(["stat", str(tmp_path / "perturbed"), "--diff", str(tmp_path / "own"), "--all"]) == 1
    out = capsys.readouterr().out
    assert "is_gradient yes" in out or " is_gradient " in out
    updates = [text for text in out.split("\ndiffers ") if text.split()[0].startswith("ApplyMomentum")]
    assert updates and all(re.search(r"\.(weight|bias)\b", text) for text in updates)


@pytest.mark.parametrize("value", [5, "x", (1, 2), ["first.weight", "", "too many"], ("first.weight",)])
def test_an_attribute_of_another_kind_is_no_harm(value: Any, tmp_path: Path) -> None:
    """Graph files are untrusted."""
    from msdump.analysis.graph_info import read_graph
    from msdump.graph._proto import debug_graph_pb2
    from msdump.graph.pb import fill_value

    model = debug_graph_pb2.ModelProto()
    model.graph.node.add(name="1", op_type="Mul", full_name="Default/Mul-op0")
    gather = model.graph.node.add(name="2", op_type="MakeTuple", full_name="Default/MakeTuple-op1")
    gather.input.add(name="1")
    fill_value(gather.attribute.add(name="gradient_of").value, value, "here")
    path = tmp_path / "ms_output_trace_code_graph_0.pb"
    path.write_bytes(model.SerializeToString())
    is_named = isinstance(value, (list, tuple)) and value[0] == "first.weight"
    assert dict(read_graph(path).gradients) == ({("Default/Mul-op0", 0): "first.weight"} if is_named else {})


def test_layers_of_an_exported_model_do_not_begin_with_a_dot(tmp_path: Path) -> None:
    values = np.ones(2, np.float32)
    operators = [(name, {("output", 0): values}) for name in ("/blocks.2/up/Gemm-op0", "/Add-op1", "Net/fc/MatMul-op2")]
    rows = rows_of(write_dump(tmp_path / "dump", operators))
    assert [row.role.layer or "" for row in rows.values()] == ["blocks.2.up", "", "Net.fc"]
