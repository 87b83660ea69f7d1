"""`torch.compile` inside of `msdump.watch`: the same graphs run as without, and the dump says so."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch._dynamo import compiled_autograd  # noqa: E402
from torch._dynamo.backends.debugging import aot_eager  # noqa: E402
from torch.utils._python_dispatch import _get_current_dispatch_mode as current_mode  # noqa: E402

import msdump  # noqa: E402
from msdump.frontends.torch import backend  # noqa: E402
from msdump.process import sessions  # noqa: E402
from tests.frontends.torch.dumping import configure  # noqa: E402
from tests.frontends.torch.eager.compiled_programs import Block, Broken, steps  # noqa: E402
from tests.frontends.torch.eager.test_watch import ROOT, config, names  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"),
    pytest.mark.usefixtures("nothing_is_compiled"),
]


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


def replaced_functions() -> list[Any]:
    record = torch.autograd.profiler.record_function
    engine = torch.autograd._engine_run_backward
    return [nn.Module.__call__, record.__enter__, record.__exit__, engine, torch._dynamo.utils.CleanupHook.create]


def test_what_pytorch_has_in_its_place_is_restored(tmp_path: Path) -> None:
    before = replaced_functions()
    with msdump.watch(config=config(tmp_path)):
        assert [one for one, other in zip(before, replaced_functions(), strict=True) if one is other] == []
    assert replaced_functions() == before


@pytest.mark.parametrize("is_closed", [True, False])
def test_graphs_of_a_session_that_has_ended_listen_to_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_closed: bool
) -> None:
    before = replaced_functions()
    configure(tmp_path, monkeypatch)
    torch.compile(nn.Linear(2, 2), backend=backend)(torch.ones(1, 2))
    assert replaced_functions() != before
    if is_closed:
        sessions.close_all()
        assert replaced_functions() == before
        torch.compile(nn.Linear(2, 2), backend=backend)(torch.ones(1, 2))
    else:
        sessions.reset_for_tests()
    assert replaced_functions() == before


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
