"""Regions that `torch.compile` made are shown at their border, in the iterations that they belong to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")


import msdump  # noqa: E402
from msdump.frontends.torch.eager.regions import Region, RegionCounts  # noqa: E402
from tests.frontends.torch.eager.compiled_programs import Block, steps  # noqa: E402
from tests.frontends.torch.eager.test_watch import config, names  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"),
    pytest.mark.usefixtures("nothing_is_compiled"),
]


needs_setting = pytest.mark.skipif(
    tuple(map(int, torch.__version__.split(".")[:2])) < (2, 9), reason="PyTorch before 2.9 compiles anew under a dump"
)


def tensors(folder: Path, **where: Any) -> dict[tuple[str, str, int], Any]:
    return {(each.op_name, each.io, each.slot): each.load() for each in msdump.open(folder).tensors(**where)}


@needs_setting
@pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])
def test_a_region_is_shown_at_its_border(is_sync: bool, tmp_path: Path) -> None:
    """What it is given, as it was before; what it returns and overwrites; and so the graph of its gradients."""

    @torch.compile(fullgraph=True, backend="aot_eager")
    def scaled(x: Any, total: Any) -> Any:
        total.add_(x.detach().sum())
        return (x * 3).sin()

    x = torch.ones(2, requires_grad=True)
    total = torch.full((1,), 5.0)
    with msdump.watch(config=config(tmp_path, is_sync)) as watch:
        y = scaled(x, total)
        z = total * 2
        y.sum().backward()
    forward, backward = tensors(tmp_path, graph=0), tensors(tmp_path, graph=1)
    name = "compiled.test_a_region_is_shown_at_its_border._locals_.scaled-op0"
    given = {slot: value for (op, io, slot), value in forward.items() if op == name and io == "input"}
    made = {slot: value for (op, io, slot), value in forward.items() if op == name and io == "output"}
    assert sorted(value.tolist() for value in given.values()) == [[1, 1], [5]]
    np.testing.assert_array_equal(made[0], y.detach().numpy())
    assert made[1].tolist() == [7] == total.tolist()
    assert forward["aten.mul.Tensor-op0", "input", 0].tolist() == [7]
    assert forward["aten.mul.Tensor-op0", "output", 0].tolist() == z.tolist()
    assert {op for op, _, _ in forward} == {
        name,
        "aten.mul.Tensor-op0",
        "aten.sum.default-op0",
        "aten.ones_like.default-op0",
    }
    np.testing.assert_array_equal(backward[name, "input", 0], np.ones(2, "float32"))
    np.testing.assert_array_equal(backward[name, "output", 0], x.grad.numpy())
    (line,) = [line for line in watch.report().outside if line.startswith("compiled")]
    assert line.endswith(
        "in test_a_region_is_shown_at_its_border.<locals>.scaled: ran 2 times, 2 of them shown at the border, "
        "what it computes inside in no dump."
    )
    assert line.startswith(f"compiled by torch.compile: {__file__}:")


def test_memory_that_a_region_overwrites_is_read_again(tmp_path: Path) -> None:
    """Nobody says which tensors these are, where no operator writes them."""
    data = np.zeros(3, "float32")
    shared = torch.from_numpy(data)

    def backend(module: Any, example_inputs: Any) -> Any:
        def run(*args: Any) -> Any:
            data[:] += 1
            return module(*args)

        return run

    compiled = torch.compile(lambda x: x + 1, backend=backend)
    with msdump.watch(config=config(tmp_path)):
        first = shared * 2
        compiled(torch.ones(3))
        second = shared * 2
    found = tensors(tmp_path)
    assert [found[f"aten.mul.Tensor-op{n}", "input", 0].tolist() for n in (0, 1)] == [[0] * 3, [1] * 3]
    assert [first.tolist(), second.tolist()] == [[0] * 3, [2] * 3]


@needs_setting
def test_scopes_of_what_runs_one_by_one(tmp_path: Path) -> None:
    """A module that is not compiled, in one that is; and gradients of a region that has no graph of them."""
    model = Block()
    model.inner[2].forward = torch._dynamo.disable(model.inner[2].forward)
    compiled = torch.compile(model, backend="eager")
    with msdump.watch(model, config(tmp_path)) as watch:
        for _ in range(2):
            compiled(torch.ones(3, 4)).sum().backward()
    report = watch.report()
    assert report.iterations_run == 2 and not report.error
    found = {node.full_name for graph in watch.graphs for node in graph.nodes}
    assert "Default/inner-Sequential/2-ReLU/aten.relu.default-op0" in found
    assert any(name.startswith("Default/compiled.Block.forward-op") for name in found), found
    assert "Gradients/Default/inner-Sequential/2-ReLU/aten.threshold_backward.default-op0" in found
    assert not any("_orig_mod" in name for name in found)


def test_parameters_of_a_region_have_their_names(tmp_path: Path) -> None:
    model = Block()
    compiled = torch.compile(model, backend="aot_eager")
    with msdump.watch(config=config(tmp_path)):
        compiled(torch.ones(3, 4))
    shown = {each.op_name for each in msdump.open(tmp_path).tensors(op_type="Parameter")}
    assert {name for name, _ in model.named_parameters()} <= shown


@needs_setting
def test_a_compiled_optimizer_is_an_update(tmp_path: Path) -> None:
    model = Block()
    sgd = torch.optim.SGD(model.parameters(), 0.1)
    sgd.step = torch.compile(sgd.step, backend="aot_eager")
    before = model.end.weight.detach().clone()
    with msdump.watch(model, config(tmp_path)):
        model(torch.ones(3, 4)).sum().backward()
        sgd.step()
    update = tensors(tmp_path, graph=2)
    outputs = [value for (op, io, _), value in update.items() if op == "compiled.SGD.step-op0" and io == "output"]
    inputs = [value for (op, io, _), value in update.items() if op == "compiled.SGD.step-op0" and io == "input"]
    assert len(outputs) == len(inputs) == len(list(model.parameters()))
    assert any(np.array_equal(value, model.end.weight.detach().numpy()) for value in outputs)
    assert any(np.array_equal(value, model.end.weight.grad.numpy()) for value in inputs)
    kept = tensors(tmp_path, graph=0)
    np.testing.assert_array_equal(kept["end.weight", "output", 0], before.numpy())


def test_a_region_that_raises(tmp_path: Path) -> None:
    def backend(module: Any, example_inputs: Any) -> Any:
        def run(*args: Any) -> Any:
            raise ValueError("broken")

        return run

    compiled = torch.compile(lambda x: x + 1, backend=backend)
    with msdump.watch(config=config(tmp_path)) as watch:
        with pytest.raises(ValueError, match="broken"):
            compiled(torch.ones(3))
        torch.ones(3).sin()
    assert not watch.report().error
    assert "aten.sin.default-op0" in names(tmp_path, 0)


def test_regions_that_are_not_selected_run_as_they_are(tmp_path: Path) -> None:
    compiled = torch.compile(lambda x: x + 1, backend="aot_eager")
    with msdump.watch(config=config(tmp_path, kernels=["aten.sin.default"], dump_mode=1)) as watch:
        compiled(torch.ones(3)).sin()
    assert {name.rpartition("-")[0] for name in names(tmp_path, 0)} == {"aten.sin.default"}
    assert any("ran 1 time, 0 of them shown" in line for line in watch.report().outside)


def test_an_older_pytorch_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = torch.compile(lambda x: x + 1, backend="eager")
    with msdump.watch(config=config(tmp_path)) as watch:
        compiled(torch.ones(3))
        monkeypatch.setattr("msdump.frontends.torch.eager.regions.TorchDispatchMode", object)
        assert any("pip install --upgrade 'torch>=2.9'" in line for line in watch.report().outside)


def test_more_places_than_a_report_names_are_counted() -> None:
    counts = RegionCounts()
    for place in range(23):
        region = Region()
        region.place = f"model.py:{place} in forward"
        counts.count(region, is_shown=False)
        counts.count(region, is_shown=place == 0)
    lines = [line for line in counts.lines() if "pip install" not in line]  # advice for an older PyTorch
    assert len(lines) == 21
    assert lines[0] == (
        "compiled by torch.compile: model.py:0 in forward: ran 2 times, 1 of them shown at the border, "
        "what it computes inside in no dump."
    )
    assert lines[-1] == "compiled by torch.compile: 3 more places: ran 6 times."


# -- iterations --------------------------------------------------------------------------------------------------------


@needs_setting
def test_a_script_may_end_its_iterations_itself(tmp_path: Path) -> None:
    model = Block()
    compiled = torch.compile(model, backend="aot_eager")
    with msdump.watch(config=config(tmp_path)) as watch:
        watch.step()
        for _ in range(2):
            for _ in range(2):
                compiled(torch.ones(3, 4)).sum().backward()
            watch.step()
        watch.pause()
        compiled(torch.ones(3, 4))
        watch.resume()
    assert watch.report().iterations_run == 2
    assert {"compiled.Block.forward-op0", "compiled.Block.forward-op1"} <= names(tmp_path, 1)
    assert "compiled.Block.forward-op2" not in names(tmp_path, 1)


def test_a_checkpoint_that_runs_again_is_no_iteration(tmp_path: Path) -> None:
    model = Block()

    def run() -> None:
        y = torch.utils.checkpoint.checkpoint(model.inner, torch.ones(3, 4), use_reentrant=False)
        model.end(y).sum().backward()

    with msdump.watch(config=config(tmp_path)) as watch:
        for _ in range(3):
            run()
    assert watch.report().iterations_run == 3


@needs_setting
def test_the_flight_recorder_of_a_compiled_model(tmp_path: Path) -> None:
    """The last steps and that of the trigger hold the border of the model and a loss made outside of it."""
    model = torch.compile(Block(), backend="aot_eager", fullgraph=True)
    (tmp_path / "ring").mkdir()
    recording = msdump.recorder(tmp_path / "dump", ring=tmp_path / "ring", steps=2, budget="50M")
    with recording as block, msdump.watch():
        steps(model, count=5)
        assert block.trigger("by hand")
    report = recording.report()
    assert report is not None and not report.error and report.iterations_run == 5
    (incident,) = (tmp_path / "dump").glob("incident_*")
    found = list(msdump.open(incident).tensors())
    assert {tensor.iteration for tensor in found} == {2, 3, 4}
    assert {"compiled.Block.forward-op0", "aten.mean.default-op0"} <= {tensor.op_name for tensor in found}


def test_a_function_that_calls_the_model_begins_its_iterations(tmp_path: Path) -> None:
    """Told by the parameters that its graph is given; one that is given others, or none, begins none."""
    model, other = Block(), Block()
    compiled = torch.compile(lambda x: model(x), backend="aot_eager", fullgraph=True)
    beside = torch.compile(lambda x: other(x), backend="aot_eager", fullgraph=True)
    plain = torch.compile(lambda x: x + 1, backend="aot_eager", fullgraph=True)
    with msdump.watch(model, config(tmp_path)) as watch:
        for _ in range(3):
            beside(torch.ones(3, 4))
            compiled(plain(torch.ones(3, 4))).sum().backward()
    assert watch.report().iterations_run == 3
    shown = {each.op_name for each in msdump.open(tmp_path).tensors(op_type="Parameter", iteration=2)}
    assert {name for name, _ in model.named_parameters()} <= shown
