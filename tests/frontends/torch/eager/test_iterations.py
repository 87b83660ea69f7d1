"""Iterations of an eager program: when one begins, and which part of a step an operator is in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils._python_dispatch import _get_current_dispatch_mode as current_mode  # noqa: E402

import msdump  # noqa: E402
from msdump.frontends.torch.eager.iterations import Iterations  # noqa: E402
from msdump.frontends.torch.eager.scopes import Scopes  # noqa: E402
from msdump.frontends.torch.eager.stage import BACKWARD, FORWARD, UPDATE  # noqa: E402
from msdump.frontends.torch.steps import Steps  # noqa: E402
from tests.frontends.torch.eager.test_watch import config, names, pytestmark  # noqa: E402, F401


def iterations_of(model: Any = None) -> Iterations:
    numbers = iter(range(100))
    return Iterations(Steps(lambda: next(numbers)), model, Scopes(lambda module: None))


def test_a_call_of_the_model_begins_an_iteration() -> None:
    model, part = nn.Linear(2, 2), nn.ReLU()
    iterations = iterations_of(model)
    assert iterations.of_call(part) is None
    assert iterations.of_call(model) == 0
    iterations.current = 0
    assert iterations.without_modules() is None
    assert iterations.of_call(model) == 1


def test_a_script_that_ends_its_steps_has_no_other_iterations() -> None:
    iterations = iterations_of()
    iterations.is_explicit = True
    assert iterations.of_call(nn.ReLU()) == 0
    iterations.current = 0
    iterations.enter_backward()
    iterations.leave_backward()
    assert iterations.of_call(nn.ReLU()) is None


def test_parts_of_a_step() -> None:
    iterations = iterations_of()
    iterations.current = iterations.without_modules()
    assert iterations.part(None) == FORWARD and iterations.part(object()) == BACKWARD
    iterations.enter_optimizer("SGD")
    assert iterations.optimizers == ["optimizer-SGD"]
    assert iterations.part(None) == FORWARD  # a closure, which needs gradients
    with torch.no_grad():
        assert iterations.part(None) == UPDATE
    iterations.leave_optimizer()
    assert iterations.part(None) == UPDATE  # until the next iteration
    assert iterations.without_modules() == 1


def test_parts_of_a_step_that_regions_are() -> None:
    model = nn.Linear(2, 2)
    iterations = iterations_of(model)
    args = [model.weight, torch.ones(2)]
    assert iterations.calls_model(args) and not iterations.calls_model([nn.Parameter(torch.ones(2))])
    assert iterations.part_of_region(args, None) == FORWARD
    model(torch.ones(1, 2)).sum().backward()
    assert iterations.part_of_region([*args, model.weight.grad], None) == UPDATE
    iterations.enter_backward()
    assert iterations.part_of_region(args, None) == BACKWARD
    iterations.leave_backward()
    assert iterations.part_of_region(args, None) == FORWARD


def test_operators_of_other_iterations_are_not_looked_at(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    modes = []

    def hook(module: Any, args: Any) -> None:
        modes.append(current_mode() is not None)

    with msdump.watch(model, config(tmp_path, iteration="1|3")):
        handle = nn.ReLU().register_forward_pre_hook(hook)
        for _ in range(5):
            y = model(torch.ones(1, 3))
            modes.append(current_mode() is not None)
            y.sum().backward()
        handle.remove()
    assert modes == [False, True, False, True, False]
    assert {tensor.iteration for tensor in msdump.open(tmp_path).tensors()} == {1, 3}


def test_without_modules_a_backward_ends_an_iteration(tmp_path: Path) -> None:
    weight = torch.ones(3, requires_grad=True)
    with msdump.watch(config=config(tmp_path)):
        for _ in range(3):
            (weight * weight.sin()).sum().backward()
            with torch.no_grad():
                weight -= 0.1 * weight.grad
    for iteration in range(3):
        assert {"aten.sin.default-op0", "aten.sub_.Tensor-op0"} <= names(tmp_path, iteration)
    assert not names(tmp_path, 3)


def test_a_script_may_end_its_iterations_itself(tmp_path: Path) -> None:
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    with msdump.watch(config=config(tmp_path, dump_mode=1, kernels=["addmm"])) as watch:
        watch.step()
        for _ in range(2):
            first(torch.ones(1, 3)).sum().backward()
            second(torch.ones(1, 3)).sum().backward()
            first(torch.ones(1, 3))
            watch.step()
    expected = {f"aten.addmm.default-op{number}" for number in range(3)}
    assert [names(tmp_path, iteration) & expected for iteration in range(3)] == [expected, expected, set()]


def test_a_closure_of_an_optimizer_is_no_part_of_it(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = model(torch.ones(4, 3)).square().sum()
        loss.backward()
        return loss

    with msdump.watch(model, config(tmp_path)):
        optimizer.step(closure)
    names = {graph: {file.op_name for file in msdump.open(tmp_path).files(graph=graph)} for graph in (0, 1, 2)}
    assert "aten.addmm.default-op0" in names[0] and "aten.pow.Tensor_Scalar-op0" in names[0]
    assert any("mm" in name for name in names[1])
    assert "aten.add_.Tensor-op0" in names[2] and not any("mm" in name for name in names[2])


def test_evaluation_is_an_iteration_of_its_own(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    with msdump.watch(model, config(tmp_path)):
        model(torch.ones(1, 3)).sum().backward()
        with torch.no_grad():
            model(torch.ones(1, 3))
            model(torch.ones(2, 3))
    assert {tensor.iteration for tensor in msdump.open(tmp_path).tensors()} == {0, 1, 2}
