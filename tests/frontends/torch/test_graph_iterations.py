"""Iterations of compiled models: a step of training is one, whatever it does; as in `eager/test_iterations.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import msdump  # noqa: E402
from msdump.engine import opening  # noqa: E402
from msdump.frontends.torch import backend  # noqa: E402
from msdump.frontends.torch.eager.listening import listening  # noqa: E402
from tests.frontends.torch.dumping import close, configure  # noqa: E402
from tests.frontends.torch.scenarios import quiet  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf"),
]
fresh = pytest.fixture(autouse=True)(quiet)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return configure(tmp_path, monkeypatch)


class Net(nn.Module):
    def __init__(self, inputs: int = 3, outputs: int = 1) -> None:
        super().__init__()
        self.layer = nn.Linear(inputs, outputs)

    def forward(self, x: Any) -> Any:
        return self.layer(x).sin()


def compiled(module: Any) -> Any:
    return torch.compile(module, backend=backend, dynamic=False)


def sgd(*modules: nn.Module) -> Any:
    return torch.optim.SGD([parameter for module in modules for parameter in module.parameters()], 0.1)


def runs(root: Path, op_type: str = "aten_sin_default") -> list[int]:
    """How often an operator ran in each iteration, by the graphs that have a file of it."""
    assert close().error is None
    files = [
        (file.levels.iteration, file.levels.graph_id, file.op_name)
        for file in msdump.open(root, strict=True).files()
        if file.op_type == op_type and file.io == "output"
    ]
    assert len(set(files)) == len(files)  # no graph ran twice under one name
    iterations = [iteration for iteration, *_ in files]
    return [iterations.count(number) for number in range(max(iterations, default=-1) + 1)]


def test_a_step_is_an_iteration_of_two_graphs(root: Path) -> None:
    model = Net()
    called, optimizer = compiled(model), sgd(model)
    for _ in range(3):
        optimizer.zero_grad()
        called(torch.ones(2, 3)).sum().backward()
        optimizer.step()
    assert runs(root) == [1, 1, 1]
    assert {file.levels.graph_id for file in msdump.open(root).files()} == {0, 1}


@pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])
def test_accumulated_gradients_are_one_iteration(
    is_sync: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of the small batches is a pair of graphs of its own, which hold what it computed."""
    root = configure(tmp_path, monkeypatch, is_sync=is_sync)
    model = Net()
    called, optimizer = compiled(model), sgd(model)
    inputs = []
    for step in range(2):
        for part in range(3):
            inputs.append(torch.full((1, 3), 10.0 * step + part))
            called(inputs[-1]).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    assert runs(root) == [3, 3]
    dump = msdump.open(root)
    for number, expected in enumerate(inputs):
        # Forward and backward in turn.
        files = dump.tensors(graph=2 * (number % 3), iteration=number // 3, io="input", op_type="aten_addmm_default")
        found = [tensor.load() for tensor in files if tensor.slot == 1]
        assert len(found) == 1 and np.array_equal(found[0], expected.numpy())
    assert {file.levels.graph_id for file in dump.files(iteration=1)} == set(range(6))


def test_a_penalty_and_a_model_that_is_called_twice(root: Path) -> None:
    model, head = Net(3, 2), Net(2, 1)
    called, scored, optimizer = compiled(model), compiled(head), sgd(model, head)
    for _ in range(3):
        optimizer.zero_grad()
        left, right = called(torch.ones(1, 3)), called(torch.zeros(1, 3))
        (scored(left) - scored(right)).square().sum().backward()
        optimizer.step()
    assert runs(root) == [4, 4, 4]


def test_a_gan_has_an_iteration_for_each_step(root: Path) -> None:
    maker, judge = Net(2, 3), Net(3, 1)
    made, judged = compiled(maker), compiled(judge)
    of_maker, of_judge = sgd(maker), sgd(judge)
    for _ in range(3):
        of_judge.zero_grad()
        (judged(torch.ones(2, 3)) - judged(made(torch.ones(2, 2)).detach())).sum().backward()
        of_judge.step()
        of_maker.zero_grad()
        judged(made(torch.ones(2, 2))).sum().backward()
        of_maker.step()
    assert runs(root) == [3, 2] * 3
    report = opening.current().report()  # type: ignore[union-attr]
    assert report.training == "iterations per optimizer step: 2 for each step of each of 2 optimizers SGD"


def test_a_teacher_belongs_to_the_step_that_it_begins(root: Path) -> None:
    teacher, student = Net(), Net()
    taught, called, optimizer = compiled(teacher), compiled(student), sgd(student)
    for _ in range(3):
        with torch.no_grad():
            target = taught(torch.ones(2, 3))
        (called(torch.ones(2, 3)) - target).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    assert runs(root) == [2, 2, 2]


def test_evaluation_between_steps_has_iterations_of_its_own(root: Path) -> None:
    """Also one with gradients, as many forget, and a batch of another size, which is another graph."""
    model = Net()
    called, optimizer = compiled(model), sgd(model)
    for _ in range(2):
        called(torch.ones(2, 3)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        model.eval()
        called(torch.ones(2, 3))
        with torch.no_grad():
            called(torch.ones(2, 3))
            called(torch.ones(1, 3))
        model.train()
    assert runs(root) == [1] * 8


def test_evaluation_inside_of_a_step_is_part_of_it(root: Path) -> None:
    model = Net()
    called, optimizer = compiled(model), sgd(model)
    for _ in range(2):
        for _ in range(2):
            called(torch.ones(2, 3)).sum().backward()
            with torch.no_grad():
                called(torch.ones(2, 3))
        optimizer.step()
        optimizer.zero_grad()
    assert runs(root) == [4, 4]


def test_blocks_that_share_a_graph_are_one_step(root: Path) -> None:
    """Dynamo compiles the code once, and runs the graph for each of the blocks."""
    blocks = nn.ModuleList([Net(3, 3) for _ in range(3)])
    for block in blocks:
        block.compile(backend=backend)
    optimizer = sgd(blocks)
    for _ in range(2):
        x = torch.ones(2, 3)
        for block in blocks:
            x = block(x)
        x.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        for _ in range(2):
            x = torch.ones(2, 3)
            for block in blocks:
                x = block(x)
    assert runs(root) == [3, 3, 3, 3]


def test_a_step_that_a_scaler_skips_is_an_iteration(root: Path) -> None:
    model = Net()
    called, optimizer = compiled(model), sgd(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
    for _ in range(3):
        optimizer.zero_grad()
        scaler.scale((called(torch.ones(1, 3)) * 1e30).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert runs(root) == [1, 1, 1]
    assert opening.current().report().training == ""  # type: ignore[union-attr]


def test_a_compiled_optimizer_is_part_of_its_step(root: Path) -> None:
    model = Net()
    called, optimizer = compiled(model), sgd(model)
    step = compiled(optimizer.step)
    for _ in range(3):
        for _ in range(2):
            called(torch.ones(1, 3)).sum().backward()
        step()
        optimizer.zero_grad()
    assert runs(root) == [2, 2, 2]


def test_without_an_optimizer_a_graph_that_runs_again_begins_an_iteration(root: Path) -> None:
    model = Net()
    called = compiled(model)
    for _ in range(3):
        for _ in range(2):
            called(torch.ones(1, 3)).sum().backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
                parameter.grad = None
    assert runs(root) == [1] * 6


def test_gradients_that_are_thrown_away_end_a_step(root: Path) -> None:
    model = Net()
    called, optimizer = compiled(model), sgd(model)
    for step in range(3):
        called(torch.ones(1, 3)).sum().backward()
        if step != 1:
            optimizer.step()
        model.zero_grad()
    assert runs(root) == [1, 1, 1]


def test_a_step_that_never_ends_does_not_fill_the_memory(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluation in training mode, with gradients, beside an optimizer."""
    monkeypatch.setattr("msdump.frontends.torch.graph_iterations._MAX_REPEATED", 10)
    model = Net()
    called, optimizer = compiled(model), sgd(model)
    for _ in range(20):
        called(torch.ones(1, 3))
    found = runs(root)
    assert optimizer.param_groups and sum(found) == 20 and len(found) > 2


def test_where_the_script_says_so_an_iteration_ends(root: Path) -> None:
    model = Net()
    called, optimizer = compiled(model), sgd(model)
    for number in range(4):
        called(torch.ones(1, 3)).sum().backward()
        if number % 2:
            optimizer.step()
            optimizer.zero_grad()
        opening.current().end_step()  # type: ignore[union-attr]
    assert runs(root) == [1, 1, 1, 1]
    assert opening.current().report().training == "iterations per optimizer step: 2 for each step of SGD"  # type: ignore[union-attr]


def test_a_program_that_is_watched_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its iterations are those of the graphs that it calls; what it pauses for is in none."""
    root = configure(tmp_path, monkeypatch)
    model = Net()
    called, optimizer = compiled(model), sgd(model)
    with msdump.watch() as watch:
        for _ in range(2):
            watch.resume()
            for _ in range(3):
                called(torch.ones(1, 3)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            watch.step()
            watch.pause()
            called(torch.ones(1, 3)).sum().backward()
            optimizer.zero_grad()
    assert runs(root) == [3, 3]


def test_nothing_is_heard_without_a_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    functions: Callable[[], tuple[Any, ...]] = lambda: (  # noqa: E731
        torch.autograd._engine_run_backward, torch.autograd.profiler.record_function.__enter__, nn.Module.__call__,
        torch.amp.GradScaler.step,
    )  # fmt: skip
    before = functions()
    compiled(Net())(torch.ones(1, 3)).sum().backward()
    assert functions() == before
    configure(tmp_path, monkeypatch)
    with msdump.dump(tmp_path / "data_dump.json"):
        compiled(Net())(torch.ones(1, 3)).sum().backward()
        assert functions()[2] is before[2] and functions()[0] is not before[0]
    assert functions() == before and not listening.listeners
