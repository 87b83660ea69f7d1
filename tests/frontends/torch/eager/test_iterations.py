"""Iterations of an eager program: when one begins, and which part of a step an operator is in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils._python_dispatch import _get_current_dispatch_mode as current_mode  # noqa: E402

import msdump  # noqa: E402
from msdump.config.environment import NATIVE  # noqa: E402
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
    iterations.enter_backward(accumulates=True)
    iterations.leave_backward()
    assert iterations.of_call(nn.ReLU()) is None


def test_parts_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    # Those of other tests, which a compiler may still hold, have gradients that would wait for a step.
    monkeypatch.setattr("msdump.frontends.torch.eager.optimizers.instances_of", lambda _: [])
    iterations = iterations_of()
    iterations.current = iterations.without_modules()
    assert iterations.part(None) == FORWARD and iterations.part(object()) == BACKWARD
    iterations.enter_optimizer("SGD", None)
    assert iterations.optimizers == ["optimizer-SGD"]
    assert iterations.part(None) == FORWARD  # a closure, which needs gradients
    with torch.no_grad():
        assert iterations.part(None) == UPDATE
    iterations.leave_optimizer()
    assert iterations.part(None) == UPDATE  # until the next iteration
    assert iterations.without_modules() == 1


def test_a_region_that_led_to_a_module_begins_the_next_iteration() -> None:
    """An evaluation whose loop begins with `torch.cond`, or with a compiled function of the data alone."""
    iterations, model = iterations_of(), nn.Linear(2, 2)

    def region(*callers: str) -> None:
        for caller in callers:
            begun = iterations.of_region(caller)
            iterations.current = iterations.current if begun is None else begun

    with torch.no_grad():
        iterations.current = iterations.without_modules()
        for step in range(3):
            region("before", "before")
            assert iterations.current == step
            assert iterations.of_call(model) is None
            region("behind", "behind")
            assert iterations.current == step


def test_a_region_begins_no_iteration_inside_of_a_step_of_training() -> None:
    iterations, model = iterations_of(), nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    iterations.current = iterations.without_modules()
    assert iterations.of_region("before") is None
    iterations.of_call(model)
    assert iterations.of_region("before") is None
    assert optimizer.param_groups


def test_parts_of_a_step_that_regions_are() -> None:
    model = nn.Linear(2, 2)
    iterations = iterations_of(model)
    args = [model.weight, torch.ones(2)]
    assert iterations.calls_model(args) and not iterations.calls_model([nn.Parameter(torch.ones(2))])
    assert iterations.part_of_region(args, None) == FORWARD
    model(torch.ones(1, 2)).sum().backward()
    assert iterations.part_of_region([*args, model.weight.grad], None) == UPDATE
    iterations.enter_backward(accumulates=True)
    assert iterations.part_of_region(args, None) == BACKWARD
    iterations.leave_backward()
    assert iterations.part_of_region(args, None) == FORWARD


def test_operators_of_other_iterations_are_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NATIVE, "0")
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


def dumped(folder: Path, graph: int = 0) -> list[int]:
    """Iterations that a graph has tensors of."""
    return sorted(
        {tensor.iteration for tensor in msdump.open(folder).tensors(graph=graph) if tensor.iteration is not None}
    )


def test_accumulated_gradients_are_one_iteration(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with msdump.watch(model, config(tmp_path)):
        for _ in range(3):
            for _ in range(4):
                model(torch.ones(1, 3)).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    assert [dumped(tmp_path, graph) for graph in range(3)] == [[0, 1, 2]] * 3
    expected = {f"aten.pow.Tensor_Scalar-op{number}" for number in range(4)}
    for iteration in range(3):
        assert expected <= names(tmp_path, iteration)
        files = list(msdump.open(tmp_path).files(graph=0, iteration=iteration))
        # Once, though the forward pass ends four times.
        assert sorted(file.op_name for file in files if file.op_type == "Parameter") == ["bias", "weight"]


def test_a_module_that_is_called_twice_in_a_step_begins_no_iteration(tmp_path: Path) -> None:
    model, head = nn.Linear(3, 2), nn.Linear(2, 1)
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()])
    with msdump.watch(config=config(tmp_path)):
        for _ in range(3):
            optimizer.zero_grad()
            left, right = model(torch.ones(1, 3)), model(torch.zeros(1, 3))
            with torch.no_grad():
                target = head(left)
            (head(right) - target).square().sum().backward()
            optimizer.step()
    assert dumped(tmp_path) == [0, 1, 2]


def test_a_teacher_without_gradients_belongs_to_the_step_that_it_begins(tmp_path: Path) -> None:
    teacher, student = nn.Linear(3, 2), nn.Linear(3, 2)
    optimizer = torch.optim.SGD(student.parameters(), 0.1)
    with msdump.watch(config=config(tmp_path)):
        for _ in range(3):
            with torch.no_grad():
                target = teacher(torch.ones(1, 3))
            (student(torch.ones(1, 3)) - target).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    assert dumped(tmp_path) == dumped(tmp_path, 1) == [0, 1, 2]


def test_evaluation_between_steps_has_iterations_of_its_own(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with msdump.watch(model, config(tmp_path)):
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.ones(1, 3)).square().sum().backward()
            optimizer.step()
            model.eval()
            model(torch.ones(2, 3))  # with gradients, as many forget
            with torch.no_grad():
                model(torch.ones(2, 3))
            model.train()
    assert dumped(tmp_path) == [0, 1, 2, 3, 4, 5] and dumped(tmp_path, 1) == [0, 3]


def test_a_step_that_a_scaler_skips_is_an_iteration(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**120)
    with msdump.watch(model, config(tmp_path)):
        for _ in range(3):
            loss = model(torch.ones(1, 3) * 1e30).square().sum()
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    assert dumped(tmp_path) == dumped(tmp_path, 1) == [0, 1, 2]


def test_gradients_that_are_thrown_away_end_a_step(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with msdump.watch(model, config(tmp_path)):
        for step in range(3):
            model(torch.ones(1, 3)).square().sum().backward()
            if step != 1:
                optimizer.step()
            model.zero_grad()
    assert dumped(tmp_path) == [0, 1, 2]


def test_a_penalty_on_gradients_is_inside_of_a_step(tmp_path: Path) -> None:
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with msdump.watch(model, config(tmp_path)):
        for _ in range(2):
            x = torch.ones(2, 3, requires_grad=True)
            (gradient,) = torch.autograd.grad(model(x).square().sum(), x, create_graph=True)
            (gradient.norm() + model(torch.zeros(2, 3)).sum()).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert dumped(tmp_path) == [0, 1]


def test_a_closure_that_is_called_again_begins_no_iteration(tmp_path: Path) -> None:
    model = nn.Linear(3, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = model(torch.ones(2, 3)).square().sum()
        loss.backward()
        return loss

    with msdump.watch(model, config(tmp_path)):
        for _ in range(2):
            optimizer.step(closure)
    assert dumped(tmp_path) == [0, 1]


def test_an_optimizer_in_a_hook_of_the_backward_pass(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    optimizers = {parameter: torch.optim.SGD([parameter], 0.1) for parameter in model.parameters()}

    def step(parameter: Any) -> None:
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(step)
    with msdump.watch(model, config(tmp_path)):
        for _ in range(3):
            model(torch.ones(2, 3)).square().sum().backward()
    assert dumped(tmp_path) == dumped(tmp_path, 1) == [0, 1, 2]


def test_accumulation_without_modules(tmp_path: Path) -> None:
    weight = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([weight], 0.1)
    with msdump.watch(config=config(tmp_path)):
        for _ in range(2):
            for _ in range(3):
                (weight * weight.sin()).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    assert {number for number in dumped(tmp_path) if "aten.sin.default-op0" in names(tmp_path, number)} == {0, 1}
    assert {f"aten.sin.default-op{number}" for number in range(3)} <= names(tmp_path, 1)


def test_the_data_of_a_step_belong_to_it(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with msdump.watch(config=config(tmp_path)):
        for _ in range(3):
            loss = model(torch.full((1, 3), 4.0).sqrt()).square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()
    assert dumped(tmp_path) == [0, 1, 2]
    for iteration in range(3):
        assert "aten.sqrt.default-op0" in names(tmp_path, iteration)
        assert not any(file.op_type == "aten_sqrt_default" for file in msdump.open(tmp_path).files(graph=2))


def test_what_a_script_does_before_its_first_step_is_a_graph_of_its_own(tmp_path: Path) -> None:
    from msdump.frontends.torch.eager.watching import Watch

    with Watch(None, config(tmp_path), is_whole_script=True):
        model = nn.Linear(3, 2)
        x = torch.full((1, 3), 4.0).sqrt()
        for _ in range(2):
            with torch.no_grad():
                model(x)
    files = list(msdump.open(tmp_path).files())
    assert {file.op_type for file in files if file.levels.graph_id == 3} >= {
        "aten_uniform__default",
        "aten_sqrt_default",
    }
    assert {file.levels.iteration for file in files if file.levels.graph_id == 3} == {0}
    assert dumped(tmp_path) == [0, 1]
    assert not any("uniform" in file.op_type or "sqrt" in file.op_type for file in files if file.levels.graph_id == 0)


def test_a_script_without_modules_leaves_what_is_before_its_first_step(tmp_path: Path) -> None:
    from msdump.frontends.torch.eager.watching import Watch

    with Watch(None, config(tmp_path), is_whole_script=True):
        weight = torch.full((3,), 2.0).sqrt().requires_grad_()
        for _ in range(2):
            weight.exp().sum().backward()
    files = list(msdump.open(tmp_path).files())
    assert {file.levels.graph_id for file in files if file.op_type == "aten_sqrt_default"} == {3}
    assert dumped(tmp_path) == [0, 1]


def test_a_step_that_never_ends_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluation in training mode, with gradients, beside an optimizer."""
    monkeypatch.setattr("msdump.frontends.torch.eager.program._MAX_VARIANTS", 40)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with msdump.watch(model, config(tmp_path, saved_data="statistic")) as watch:
        for _ in range(100):
            model(torch.ones(1, 3))
            assert watch._program is not None and sum(stage.variants for stage in watch._program.stages) <= 44
    report = watch.report()
    assert report is not None and 2 < report.iterations_dumped < 50 and optimizer.param_groups
