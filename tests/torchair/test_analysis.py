"""A TorchAir dump, opened at any level, measured and compared: what `msdump` says about real models."""

from __future__ import annotations

import itertools
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msdump
from msdump.analysis import find_non_finite
from msdump.cli.main import main
from msdump.formats.paths.torchair import TorchairFileName, format_torchair_name
from tests.torchair.dumps import backend_for

torch = pytest.importorskip("torch")
functional = torch.nn.functional

RANK = "worldsize1_global_rank0"


def train(path: Path, *, is_autocast: bool = False, bad_step: int | None = None, scale: float = 1.0) -> None:
    """Two steps of training, then one of evaluation: graphs forward, backward and inference."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(64, 3)
    )
    compiled = torch.compile(model, backend=backend_for(path))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(2):
        x = torch.randn(2, 1, 6, 6) * scale
        if step == bad_step:
            x[0, 0, 0, 0] = float("nan")
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=is_autocast):
            loss = functional.cross_entropy(compiled(x), torch.tensor([0, 2]))
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        compiled(torch.randn(2, 1, 6, 6))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plain")
    train(path)
    return path


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("narrow")
    train(path, is_autocast=True)
    return path


def graph_ids(path: Path) -> list[int]:
    """Numbers of the graphs in the order in which they were compiled; the process counts on from test to test."""
    return sorted(int(folder.name.removeprefix("graph_")) for folder in (path / RANK).iterdir())


def node_counts(path: Path) -> list[int]:
    """How many nodes were dumped in each step of `train`, in the order of the run."""
    forward, backward, inference = graph_ids(path)
    order = [(forward, 0), (backward, 0), (forward, 1), (backward, 1), (inference, 0)]
    folders = [path / RANK / f"graph_{graph}" / str(step) for graph, step in order]
    return [len({file.name.partition("-")[0] for file in folder.iterdir()}) for folder in folders]


def test_every_level_opens(plain: Path) -> None:
    forward, backward, inference = graph_ids(plain)
    everything = list(msdump.open(plain))
    assert not msdump.open(plain).damaged
    levels = [plain, plain / RANK, plain / RANK / f"graph_{forward}", plain / RANK / f"graph_{forward}" / "1"]
    found = [{tensor.path for tensor in msdump.open(level)} for level in levels]
    assert found[0] == found[1] == {tensor.path for tensor in everything}
    assert found[0] > found[2] > found[3]
    assert {Path(path).parent for path in found[3]} == {levels[3]}
    one = everything[0]
    (alone,) = msdump.open(one.path)
    assert (alone.op_name, alone.graph_id, alone.iteration, alone.rank_id) == (one.op_name, forward, 0, 0)
    steps = list(dict.fromkeys((tensor.graph_id, tensor.iteration) for tensor in everything))
    assert steps == [(forward, 0), (backward, 0), (forward, 1), (backward, 1), (inference, 0)]


def test_tensors_are_told_by_node_operator_and_slot(plain: Path) -> None:
    forward = graph_ids(plain)[0]
    dump = msdump.open(plain)
    (output,) = dump.tensors(graph=forward, iteration=1, op_name="addmm", io="output")
    (bias,) = dump.tensors(graph=forward, iteration=1, op_type="aten.addmm.default", io="input", slot=0)
    assert (output.shape, bias.shape, output.dtype) == ((2, 3), (3,), "float32")
    np.testing.assert_array_equal(output.load(), np.load(output.path))


def test_text_and_pickles_are_arguments_and_no_damage(tmp_path: Path) -> None:
    x = torch.arange(6.0).reshape(2, 3)
    torch.compile(lambda x: torch.add(x, x, alpha=3).to(torch.float64), backend=backend_for(tmp_path))(x)
    (folder,) = (tmp_path / RANK).glob("graph_*/0")
    # TorchAir itself pickles what is no tensor.
    name = TorchairFileName("add", "aten.add.Tensor", "INPUT", 7, None, 10**15)
    np.save(folder / format_torchair_name(name), np.array(None), allow_pickle=True)
    dump = msdump.open(tmp_path)
    found = {(tensor.op_name, tensor.io, tensor.slot_text) for tensor in dump}
    assert ("add", "input", "alpha") in found
    assert ("_to_copy", "input", "0") in found
    assert not any("dtype" in place or place[2] == "7" for place in found)
    assert not dump.damaged
    assert not dump.foreign


def test_stat_and_show_name_graphs_and_keywords(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = torch.ones(3, requires_grad=True)
    torch.compile(lambda x: torch.add(x, x, alpha=3), backend=backend_for(tmp_path))(x).sum().backward()
    forward, backward = graph_ids(tmp_path)
    assert main(["stat", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    (alpha,) = re.findall(r"^ok +add +input alpha\n? +(?:iteration )?0 of graph ([0-9]+)", text, re.MULTILINE)
    assert int(alpha) == forward
    assert set(re.findall(r"0 of graph ([0-9]+)", text)) == {str(forward), str(backward)}
    assert main(["show", str(tmp_path), "add"]) == 0
    assert "input alpha" in capsys.readouterr().out


def test_the_first_nan_is_the_first_in_time(tmp_path: Path) -> None:
    train(tmp_path, bad_step=1)
    forward, backward, inference = graph_ids(tmp_path)
    found = find_non_finite(tmp_path)
    assert found.damaged == ()
    # Step 0 of the inference graph ran after step 1 of the training graphs.
    assert [(step.step.graph_id, step.step.iteration) for step in found.steps] == [
        (forward, 1),
        (backward, 1),
        (inference, 0),
    ]
    assert found.first is not None
    assert found.first.operator.op_name == "convolution"
    below = find_non_finite(tmp_path / RANK / f"graph_{inference}")
    assert [step.step.graph_id for step in below.steps] == [inference]


def test_two_runs_in_one_folder_are_read_as_the_newer_one(tmp_path: Path) -> None:
    from msdump.analysis.steps import read_steps

    folder = tmp_path / RANK / "graph_1" / "0"
    folder.mkdir(parents=True)
    for run in (1, 2):
        name = TorchairFileName("relu", "aten.relu.default", "OUTPUT", 0, None, run * 10**15)
        np.save(folder / format_torchair_name(name), np.full(2, float(run)))
    (step,) = read_steps(msdump.open(tmp_path))
    (tensor,) = step.operators[0].outputs.values()
    assert tensor.load().tolist() == [2, 2]


def compared(mine: Path, golden: Path, folder: Path, *more: str) -> tuple[int, dict[str, Any]]:
    target = folder / "result.json"
    status = main(["compare", str(mine), str(golden), "--json", str(target), "-q", "--all", *more])
    return status, json.loads(target.read_text())


def test_equal_runs_agree_although_their_graphs_have_other_numbers(plain: Path, tmp_path: Path) -> None:
    train(tmp_path / "again")
    assert not set(graph_ids(tmp_path / "again")) & set(graph_ids(plain))
    status, result = compared(tmp_path / "again", plain, tmp_path)
    assert status == 0
    assert [len(step["operators"]) for step in result["steps"]] == node_counts(plain)
    assert not any(step["only_mine"] or step["only_golden"] for step in result["steps"])
    assert all(pair["operator"] == pair["golden"] for step in result["steps"] for pair in step["operators"])
    assert not result["damaged"]


def test_autocast_is_paired_by_node_and_the_first_difference_named(
    plain: Path, narrow: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for below in (Path(), Path(RANK)):
        status, result = compared(narrow / below, plain / below, tmp_path)
        assert status == 1
        assert [len(step["operators"]) for step in result["steps"]] == node_counts(plain)
        assert all(pair["operator"] == pair["golden"] for step in result["steps"] for pair in step["operators"])
        # What only autocast adds; nothing of the plain run is without a partner.
        names = {name.rstrip("_0123456789") for step in result["steps"] for name in step["only_mine"]}
        assert names == {"_to_copy"}
        assert not any(step["only_golden"] for step in result["steps"])
        tensors = [tensor for step in result["steps"] for pair in step["operators"] for tensor in pair["tensors"]]
        narrow_tensors = [tensor for tensor in tensors if tensor["dtypes"] == ["bfloat16", "float32"]]
        # The files tell bfloat16 also of a bias with a few numbers, so none is judged as float32.
        assert narrow_tensors and all(tensor["status"] == "agrees" for tensor in narrow_tensors)
        # Gradients of a bias before a normalisation are rounding and nothing else.
        assert result["first_wrong"] is None
    status, result = compared(narrow, plain, tmp_path, "--tolerance", "1e-4")
    first = result["first_difference"]
    assert (status, first["operator"], first["step"][2]) == (1, "convolution", 0)
    capsys.readouterr()
    main(["compare", str(narrow), str(plain), "--tolerance", "1e-4"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("first difference: only mine has _to_copy_2 (aten._to_copy.default), rank 0, graph ")
    assert lines[1].startswith("  convolution (aten.convolution.default)") and "reads what it made" in lines[1]


def test_one_graph_and_one_step_compare_as_well(plain: Path, narrow: Path, tmp_path: Path) -> None:
    places = [path / RANK / f"graph_{graph_ids(path)[0]}" for path in (narrow, plain)]
    status, result = compared(places[0], places[1], tmp_path)
    assert (status, [step["step"][2] for step in result["steps"]]) == (1, [0, 1])
    status, result = compared(places[0] / "1", places[1] / "0", tmp_path)
    assert (status, len(result["steps"])) == (1, 1)


def test_a_mistake_in_one_operator_is_found(plain: Path, tmp_path: Path) -> None:
    shutil.copytree(plain, tmp_path / "mine")
    graph = graph_ids(plain)[0]
    (path,) = (tmp_path / "mine" / RANK / f"graph_{graph}" / "1").glob("relu-*.OUTPUT.0.*")
    array = np.load(path)
    path.unlink()
    np.save(path, array * 1.5)
    status, result = compared(tmp_path / "mine", plain, tmp_path)
    assert status == 1
    assert result["first_wrong"]["operator"] == "relu"
    assert result["first_wrong"]["step"][1:] == [graph, 1]


def test_ranks_are_compared_with_their_own_kind(tmp_path: Path) -> None:
    for run, rank, step in itertools.product(("mine", "golden"), range(2), range(2)):
        folder = tmp_path / run / f"worldsize2_global_rank{rank}" / "graph_1" / str(step)
        folder.mkdir(parents=True)
        name = TorchairFileName("relu", "aten.relu.default", "OUTPUT", 0, None, 10**15 + step)
        np.save(folder / format_torchair_name(name), np.full(40, rank * 10 + step, np.float32))
    status, result = compared(tmp_path / "mine", tmp_path / "golden", tmp_path)
    assert status == 0
    assert [(step["step"][0], step["step"][2]) for step in result["steps"]] == [(0, 0), (0, 1), (1, 0), (1, 1)]
