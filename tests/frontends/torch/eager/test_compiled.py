"""`torch.compile` inside of `msdump.watch`: the same graphs run as without, and the dump says so."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch._dynamo import compiled_autograd  # noqa: E402
from torch._dynamo.backends.debugging import aot_eager  # noqa: E402
from torch.utils._python_dispatch import _get_current_dispatch_mode as current_mode  # noqa: E402

import msdump  # noqa: E402
from msdump import opening  # noqa: E402
from msdump.frontends.torch.eager.regions import Region, RegionCounts  # noqa: E402
from tests.frontends.torch.eager.test_watch import ROOT, config, names  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is compiled, and no backend of msdump's was in use, as these have all compiled anew for each dump."""
    torch._dynamo.reset()
    monkeypatch.setattr(opening, "_compilers", [])
    yield
    torch._dynamo.reset()


class Graphs:
    """A backend that keeps the text of each graph that it compiles, and counts how often these run."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.calls = 0

    def __call__(self, module: Any, example_inputs: Any) -> Any:
        nodes = list(module.graph.nodes)
        # Which input comes first may be told by a function that stands for one of PyTorch's.
        inputs = sorted(str(node.target) for node in nodes if node.op == "placeholder")
        text = f"{inputs} {[(node.op, str(node.target), node.args) for node in nodes][len(inputs) :]}"
        # Compiled autograd numbers all graphs of the process, and its graphs call functions of its own.
        self.texts.append(re.sub("aot[0-9]+_| at 0x[0-9a-f]+", "", text))
        compiled = aot_eager(module, example_inputs)

        def run(*args: Any) -> Any:
            self.calls += 1
            return compiled(*args)

        return run


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU())
        self.end = nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        return self.end(self.inner(x))


class Broken(Block):
    """Dynamo cannot compile the line between its two halves, where a module is called too."""

    def forward(self, x: Any) -> Any:
        y = self.inner(x)
        torch._dynamo.graph_break()
        return self.end(y.sin()).cos()


def steps(model: Any, optimizer: Any = None, count: int = 3) -> list[Any]:
    """Losses and gradients of a few steps."""
    torch.manual_seed(1)
    seen = []
    for _ in range(count):
        model.zero_grad()
        loss = model(torch.randn(3, 4)).square().mean()
        loss.backward()
        seen += [loss.detach(), *(parameter.grad.clone() for parameter in model.parameters())]
        if optimizer is not None:
            optimizer.step()
    return [*seen, *(value.clone() for value in model.state_dict().values())]


def whole(backend: Any) -> list[Any]:
    return steps(torch.compile(Block(), backend=backend, fullgraph=True))


def in_place(backend: Any) -> list[Any]:
    model = Block()
    model.compile(backend=backend, fullgraph=True)
    return steps(model)


def function(backend: Any) -> list[Any]:
    model = Block()
    compiled = torch.compile(lambda x: model(x), backend=backend, fullgraph=True)
    torch.manual_seed(1)
    seen = []
    for _ in range(3):
        loss = compiled(torch.randn(3, 4)).sum()
        loss.backward()
        seen += [loss.detach(), *(parameter.grad.clone() for parameter in model.parameters())]
    return seen


def part(backend: Any) -> list[Any]:
    model = Block()
    model.inner = torch.compile(model.inner, backend=backend)
    return steps(model, torch.optim.SGD(model.parameters(), 0.1))


def broken(backend: Any) -> list[Any]:
    return steps(torch.compile(Broken(), backend=backend))


def hooked(backend: Any) -> list[Any]:
    model = Block()
    model.inner.register_forward_hook(lambda module, args, result: result + 1)
    return steps(torch.compile(model, backend=backend))


def optimizer(backend: Any) -> list[Any]:
    model = Block()
    adam = torch.optim.Adam(model.parameters(), 0.1)
    adam.step = torch.compile(adam.step, backend=backend)
    return steps(model, adam)


def step(backend: Any) -> list[Any]:
    """All of a step in one function, as training loops of some frameworks have it."""
    model = Block()
    sgd = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    seen = []

    @torch.compile(backend=backend)
    def train(x: Any) -> Any:
        loss = model(x).square().mean()
        loss.backward()
        sgd.step()
        sgd.zero_grad()
        return loss

    torch.manual_seed(1)
    for _ in range(3):
        seen.append(train(torch.randn(3, 4)).detach())
    return [*seen, *(value.clone() for value in model.state_dict().values())]


def autograd(backend: Any) -> list[Any]:
    model = torch.compile(Block(), backend=backend)

    def compiler(module: Any) -> Any:
        return torch.compile(module, backend=backend, fullgraph=True)

    with compiled_autograd._enable(compiler):
        return steps(model, torch.optim.SGD(model.parameters(), 0.1))


@pytest.mark.parametrize("run", [whole, in_place, function, part, broken, hooked, optimizer, step, autograd])
def test_what_is_compiled_without_a_dump_is_compiled_with_it(run: Callable[[Any], list[Any]], tmp_path: Path) -> None:
    def seen(iteration: str | None) -> tuple[list[str], int, list[Any]]:
        torch._dynamo.reset()
        torch.manual_seed(0)
        graphs = Graphs()
        if iteration is None:
            results = run(graphs)
            return graphs.texts, graphs.calls, results
        path = tmp_path / iteration
        with msdump.watch(config=config(path, iteration=iteration)) as watch:
            results = run(graphs)
        report = watch.report()
        assert report is not None and not report.error and not report.lost
        assert report.iterations_run == 3, iteration
        assert any(line.startswith("compiled by torch.compile: ") for line in report.outside)
        return graphs.texts, graphs.calls, results

    plain = seen(None)
    for iteration in "all", "1":
        texts, calls, results = seen(iteration)
        assert texts == plain[0]
        assert calls == plain[1]
        assert all(torch.equal(one, other) for one, other in zip(results, plain[2], strict=True))
    assert {tensor.iteration for tensor in msdump.open(tmp_path / "1").tensors()} == {1}
    assert current_mode() is None


@pytest.mark.parametrize("iteration", ["all", "9"])
def test_what_is_compiled_already_stays_compiled(iteration: str, tmp_path: Path) -> None:
    """Inside of a block and after it: no guard of Dynamo's tells one from the other."""
    graphs = Graphs()
    model = torch.compile(Broken(), backend=graphs)
    adam = torch.optim.SGD(model.parameters(), 0.1)
    adam.step = torch.compile(adam.step, backend=graphs)
    steps(model, adam)
    count = len(graphs.texts)
    with msdump.watch(config=config(tmp_path, iteration=iteration)):
        steps(model, adam)
        assert len(graphs.texts) == count
    steps(model, adam)
    assert len(graphs.texts) == count


def test_what_pytorch_has_in_its_place_is_restored(tmp_path: Path) -> None:
    def functions() -> list[Any]:
        record = torch.autograd.profiler.record_function
        engine = torch.autograd._engine_run_backward
        return [nn.Module.__call__, record.__enter__, record.__exit__, engine, torch._dynamo.utils.CleanupHook.create]

    before = functions()
    with msdump.watch(config=config(tmp_path)):
        assert not any(one is other for one, other in zip(before, functions(), strict=True))
    assert functions() == before


# -- the border --------------------------------------------------------------------------------------------------------


def tensors(folder: Path, **where: Any) -> dict[tuple[str, str, int], Any]:
    return {(each.op_name, each.io, each.slot): each.load() for each in msdump.open(folder).tensors(**where)}


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
    found = {node.full_name for stage in watch._program._stages for node in stage.graph.nodes}
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
    lines = counts.lines()
    assert len(lines) == 21
    assert lines[0] == (
        "compiled by torch.compile: model.py:0 in forward: ran 2 times, 1 of them shown at the border, "
        "what it computes inside in no dump."
    )
    assert lines[-1] == "compiled by torch.compile: 3 more places: ran 6 times."


# -- iterations --------------------------------------------------------------------------------------------------------


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


# -- the command -------------------------------------------------------------------------------------------------------


_SCRIPT = """
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
for _ in range(3):
    loss = compiled(torch.ones(2, 4)).sum()
    loss.backward()
    print(loss.item())
"""


def test_the_command_says_what_ran_compiled(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(_SCRIPT)
    (tmp_path / "dump.json").write_text(json.dumps(config(tmp_path / "dump", iteration="1")))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *command, "train.py"],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240, check=True,
        )  # fmt: skip

    plain = run()
    watched = run("-m", "msdump", "run", "--config", "dump.json", "--torch-eager")
    assert watched.stdout == plain.stdout
    assert "1 of 3" in watched.stderr
    assert "compiled by torch.compile: " in watched.stderr
    assert "Sequential.forward: ran 6 times, 2 of them shown at the border" in watched.stderr
    assert "UserWarning" not in watched.stderr
    assert "compiled.Sequential.forward-op0" in names(tmp_path / "dump", 1)


@pytest.mark.slow
def test_kernels_of_inductor_give_the_same_bits(tmp_path: Path) -> None:
    results = []
    for folder in (None, tmp_path):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model = torch.compile(Block(), fullgraph=True)
        adam = torch.optim.Adam(model.parameters(), 0.1)
        if folder is None:
            results.append(steps(model, adam))
        else:
            with msdump.watch(config=config(folder)):
                results.append(steps(model, adam))
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))
