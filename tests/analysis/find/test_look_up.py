"""Source lines to operators and files, and everything about one operator."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import msdump
from msdump.analysis import (
    find_non_finite,
    find_source_line,
    list_dump,
    show_operator,
    tensor_statistics,
    write_statistic_files,
)
from msdump.analysis.graph_info import GraphFiles, read_graph
from msdump.cli.main import main
from msdump.errors import ConfigError, FormatError
from msdump.statistics.exponents import ExponentHistogram
from tests.analysis.small_dump import floats, write_dump

ROOT = Path(__file__).resolve().parents[3]
LINE = "x = self.relu(self.fc1(x))"
IR = Path(__file__).parents[2] / "golden/graph/mindspore_2.0.0_lenet.ir"


def test_a_line_leads_to_operators_and_files(own_dump: Path) -> None:
    hits = find_source_line(own_dump, "x=self.relu( self.fc1(x) )", iteration=0)
    assert [hit.node.op_type for hit in hits] == [
        "MatMul",
        "BiasAdd",
        "ReLU",
        "ReluGrad",
        "MatMul",
        "BiasAddGrad",
        "MatMul",
    ]
    assert all(hit.line.code.strip() == LINE for hit in hits)
    first = [Path(path).name.split(".", 2)[1] for path in hits[0].files]
    assert first == ["MatMul-op7"] * 3 and len(find_source_line(own_dump, LINE)[0].files) == 6
    place = f"{Path(hits[0].line.path).name}:{hits[0].line.line}"
    assert [hit.node for hit in find_source_line(own_dump, place)] == [hit.node for hit in hits]
    assert find_source_line(own_dump, "no such line") == []


def test_the_originals_text_file_tells_the_same(real_dump: Path, tmp_path: Path) -> None:
    graph = read_graph(IR)
    conv = graph.find("Conv2D-op80")
    assert (
        conv is not None and conv.own_line is not None and conv.own_line.code.strip().startswith("x = self.max_pool2d")
    )
    assert [(origin.name.rsplit("/", 1)[-1], origin.slot) for origin in conv.inputs if origin] == [
        ("MaxPool-op79", 0), ("conv2.weight", None),
    ]  # fmt: skip


def test_show_has_everything(own_dump: Path) -> None:
    shown = show_operator(own_dump, "Conv2D-op3")
    assert shown.found.key.iteration == 0
    assert [(str(tensor.slot), tensor.io, tensor.tensor.shape) for tensor in shown.tensors] == [
        ("0", "input", (2, 6, 14, 14)), ("1", "input", (16, 6, 5, 5)), ("0", "output", (2, 16, 10, 10)),
    ]  # fmt: skip
    data, weight, output = shown.tensors
    assert data.origin is not None and data.origin.name.endswith("/MaxPool-op2") and data.origin.slot == 0
    assert weight.origin is not None and (weight.origin.name, weight.origin.slot) == ("conv2.weight", None)
    assert output.numbers is not None and output.numbers.count == 3200
    assert output.preview.startswith("[-0.0") and output.preview.endswith(", ...]")
    assert shown.attrs["kernel_size"] == (5, 5)
    assert shown.readers[0].rsplit("/", 1)[-1] == "ReLU-op4"
    assert shown.source[-1].code.strip() == "x = self.max_pool2d(self.relu(self.conv2(x)))"


def test_globs_and_file_names_name_one_operator(own_dump: Path) -> None:
    for name in ("*/conv2-Conv2d/Conv2D-op3", "Conv2D.Conv2D-op3", "*op3"):
        assert show_operator(own_dump, name).found.operator.op_name == "Conv2D-op3"


def test_graph_files_that_are_missing_or_damaged(own_dump: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected graph files"):
        find_source_line(tmp_path, LINE)
    folder = tmp_path / "rank_0/graphs"
    folder.mkdir(parents=True)
    data = tmp_path / "rank_0/Net/0/0"
    data.mkdir(parents=True)
    (data / "Add.Add-op1.0.0.1.output.0.DefaultFormat.npy").write_bytes(b"")
    (folder / "ms_output_trace_code_graph_0.pb").write_bytes(b"\xff\xff\xff")
    graphs = GraphFiles(msdump.open(tmp_path))
    assert list(graphs) == [] and len(graphs.damaged) == 1
    (folder / "ms_output_trace_code_graph_0.ir").write_bytes(IR.read_bytes())
    graphs = GraphFiles(msdump.open(tmp_path))
    assert [graph.path.suffix for graph in graphs] == [".ir"]
    with pytest.raises(FormatError):
        read_graph(folder / "ms_output_trace_code_graph_0.pb")


def test_commands(own_dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["where", str(own_dump), LINE, "--iteration", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(f":27  {LINE}") and lines[1].endswith("/fc1-Dense/MatMul-op7")
    assert lines[2].startswith("    rank_0/LeNet/0/1/MatMul.MatMul-op7.0.0.")
    assert main(["where", str(own_dump), "x = self.relu(self.fc9(x))"]) == 3
    assert f'or "{LINE}"' in capsys.readouterr().err
    assert main(["show", str(own_dump), "MatMul-op7"]) == 0
    text = capsys.readouterr().out
    assert (
        text.startswith("Default/") and "transpose_b=True" in text and LINE in text and "Flatten-op6 output 0" in text
    )
    assert main(["show", str(own_dump), "MatMul-op99"]) == 3


@pytest.mark.parametrize("prefix", ["", "./", "../", "../../", "../{folder}/", "a/../{folder}/"])
def test_a_place_is_found_by_the_end_of_its_path(
    prefix: str, own_dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["where", str(own_dump), LINE, "--iteration", "1"]) == 0
    path, _, number = capsys.readouterr().out.splitlines()[0].partition("  ")[0].rpartition(":")
    place = prefix.format(folder=os.path.basename(os.path.dirname(path))) + f"{os.path.basename(path)}:{number}"
    assert main(["where", str(own_dump), place, "--iteration", "1"]) == 0
    assert "/fc1-Dense/MatMul-op7" in capsys.readouterr().out


def test_a_rank_or_graph_without_graph_files_is_named(own_dump: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"expected a graph file of the selected rank and graph, got none\. .* graph 0"
    ):
        find_source_line(own_dump, LINE, graph=7)


def test_a_few_tensors_are_shown_without_a_compiler(tmp_path: Path) -> None:
    """Its import takes longer than looking at a megabyte."""
    folder = tmp_path / "dump/rank_0/Net/0/0"
    folder.mkdir(parents=True)
    for number, (io, slot) in enumerate((("input", 0), ("input", 1), ("output", 0))):
        name = f"Add.Add-op0.0.0.{number + 1}.{io}.{slot}.DefaultFormat.npy"
        np.save(folder / name, np.full((512, 512), number, np.float32))
    code = (
        "import sys\nfrom msdump.cli.main import main\n"
        f"assert main(['show', {str(tmp_path / 'dump')!r}, 'Add-op0']) == 0\n"
        "assert not {'numba', 'torch', 'onnx'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "in each row: dtype float32, shape 512x512" in done.stdout


@pytest.mark.parametrize("kind", ["tensors", "statistics"])
def test_show_has_the_same_tensor_of_other_iterations(tmp_path: Path, kind: str) -> None:
    for iteration in range(3):
        out = {("output", 0): np.full((4,), iteration + 1, np.float32)}
        write_dump(tmp_path / "tensors", [("Net/Add-op0", out), ("Net/Mul-op1", out)], iteration=iteration)
    write_statistic_files(tmp_path / "tensors", tmp_path / "statistics")
    (shown,) = show_operator(tmp_path / kind, "Mul-op1").tensors
    assert [(key, numbers.max) for key, numbers in shown.history if numbers] == [(0, 1.0), (1, 2.0), (2, 3.0)]
    assert shown.exponents == (ExponentHistogram(0, (4,), (0,)) if kind == "tensors" else None)
    (alone,) = show_operator(tmp_path / kind, "Mul-op1", iteration=1).tensors
    assert alone.history == ()


@pytest.mark.parametrize("has_tensors", [True, False], ids=["tensors", "statistics"])
def test_an_operator_is_shown_where_it_is_bad_first(has_tensors: bool, tmp_path: Path) -> None:
    for iteration, value in enumerate((1, 2, np.inf, np.nan)):
        operators = [("D/Log-op1", {("output", 0): floats(value)}), ("D/Add-op2", {("output", 0): floats(1)})]
        write_dump(tmp_path / "tensors", operators, iteration=iteration)
    write_statistic_files(tmp_path / "tensors", tmp_path / "statistics")
    dump = tmp_path / ("tensors" if has_tensors else "statistics")
    shown = show_operator(dump, "Log-op1")
    assert shown.found.key.iteration == 2 and len(shown.tensors[0].history) == 4
    assert show_operator(dump, "Log-op1", iteration=[0, 1, 3]).found.key.iteration == 3
    assert show_operator(dump, "Log-op1", iteration=[0, 1]).found.key.iteration == 0
    assert show_operator(dump, "Add-op2").found.key.iteration == 0
    with pytest.raises(ConfigError, match='Did you mean "Log-op1"'):
        show_operator(dump, "Lgo-op1")


def test_a_statistic_csv_without_rows_says_so(tmp_path: Path) -> None:
    write_dump(tmp_path / "tensors", [("D/Log-op1", {("output", 0): floats(1)})])
    write_statistic_files(tmp_path / "tensors", tmp_path / "statistics")
    (path,) = (tmp_path / "statistics").rglob("statistic.csv")
    path.chmod(0o600)
    title = path.read_text().splitlines()[0]
    for text in (title + "\n", ""):
        path.write_text(text)
        for ask in (find_non_finite, tensor_statistics, list_dump, lambda dump: show_operator(dump, "Log-op1")):
            with pytest.raises(ConfigError, match=r"statistic\.csv, which holds no row"):
                ask(tmp_path / "statistics")
        with pytest.raises(ConfigError, match="iteration: expected a number"):
            find_non_finite(tmp_path / "statistics", iteration=9)
    path.write_text(title[5:] + "\n")
    with pytest.raises((ConfigError, FormatError)) as raised:
        find_non_finite(tmp_path / "statistics")
    assert "no row" not in str(raised.value)
