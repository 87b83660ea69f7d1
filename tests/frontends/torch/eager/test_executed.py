"""What an iteration executed, which need not be what the first one did: order, makers of inputs, and what follows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import msdump  # noqa: E402
from msdump.analysis import NonFiniteReport, find_non_finite  # noqa: E402
from msdump.analysis.graph_info import GraphFile, GraphFiles  # noqa: E402
from msdump.analysis.steps import StepKey, read_steps  # noqa: E402
from msdump.config.environment import NATIVE  # noqa: E402
from tests.frontends.torch.eager.test_watch import config, pytestmark  # noqa: E402, F401


def graph_of(folder: Path, iteration: int, graph: int = 0) -> GraphFile:
    found = GraphFiles(msdump.open(folder)).of(StepKey(0, graph, iteration))
    assert found is not None
    return found


def short(names: Any) -> list[str]:
    return [name.rpartition("/")[2] for name in names]


def watched(tmp_path: Path, step: Any, steps: int = 3) -> NonFiniteReport:
    net = torch.nn.Linear(3, 3)
    with torch.no_grad():
        net.weight.fill_(0.5)
        net.bias.zero_()
    with msdump.watch(net, config(tmp_path)):
        for number in range(steps):
            net.zero_grad()
            step(number, net(torch.ones(2, 3))).backward()
    return find_non_finite(tmp_path)


def test_order_and_makers_are_those_of_the_iteration(tmp_path: Path) -> None:
    def step(number: int, y: Any) -> Any:
        target = torch.ones(2, 3)
        if number == 1:
            target = target.exp()
        return (y - target).abs().sum() if number < 2 else (target - y).abs().sum()

    watched(tmp_path, step)
    makers = [graph_of(tmp_path, number).by_name["aten.sub.Tensor-op0"].inputs[1] for number in (0, 1)]
    assert [maker is not None and maker.name.rpartition("/")[2] for maker in makers] == [
        "aten.ones.default-op0",
        "aten.exp.default-op0",
    ]
    for number in range(3):
        names = short(node.full_name for node in graph_of(tmp_path, number).nodes)
        assert ("aten.exp.default-op0" in names) == (number == 1)
        # The one of the third iteration is another line, and so another operator.
        assert [name for name in names if "sub" in name] == [f"aten.sub.Tensor-op{0 if number < 2 else 1}"]
        steps = {step.key.iteration: step for step in read_steps(msdump.open(tmp_path)) if step.key.graph_id == 0}
        operators = [each.full_name for each in steps[number].operators if not each.is_parameter]
        assert short(operators) == names


def test_a_nan_is_followed_to_what_made_it_in_that_iteration(tmp_path: Path) -> None:
    def step(number: int, y: Any) -> Any:
        target = torch.ones(2, 3)
        if number == 1:
            target = (target - 2).log()
        return (y - target).square().sum()

    first = watched(tmp_path, step).first
    assert first is not None and first.how == "made" and first.step.iteration == 1
    assert first.operator.label.endswith("aten.log.default-op0")


def test_the_backward_pass_reads_what_the_forward_pass_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NATIVE, "0")
    watched(tmp_path, lambda number, y: y.exp().sum())
    # Autograd detaches what it has saved, which makes nothing.
    first = graph_of(tmp_path, 1, 1).by_name["aten.detach.default-op0"].inputs[0]
    assert first is not None and first.slot is None
    assert first.maker == (0, "Default/aten.exp.default-op0", 0)


def test_an_inf_that_was_stopped_is_no_finding_where_it_was_saved_for_the_backward_pass(tmp_path: Path) -> None:
    mask = torch.zeros(3).index_fill(0, torch.tensor([2]), -torch.inf)
    report = watched(tmp_path, lambda number, y: torch.logsumexp(y + mask, -1).sum())
    assert report.first is None and report.benign


def test_what_a_choice_dropped_comes_back_with_the_gradient(tmp_path: Path) -> None:
    def step(number: int, y: Any) -> Any:
        y = y - y.detach()
        return torch.where(y > 0, 1 / y, torch.zeros(2, 3)).sum()

    first = watched(tmp_path, step).first
    assert first is not None and first.kind == "NaN" and first.operator.label.startswith("Gradients/")
    assert short(each.label for each in first.sources) == ["aten.reciprocal.default-op0"]


def test_attributes_are_those_of_the_iteration(tmp_path: Path) -> None:
    net = torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    with msdump.watch(net, config(tmp_path)):
        for number in range(4):
            optimizer.param_groups[0]["lr"] = float("nan") if number == 2 else 0.1
            net(torch.ones(2, 3)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    first = find_non_finite(tmp_path).first
    assert first is not None and first.step.iteration == 2 and first.operator.label.endswith("aten.add_.Tensor-op0")
    assert [(name, str(value)) for name, value in first.attributes] == [("alpha", "nan")]
    alphas = [graph_of(tmp_path, number, 2).by_name["aten.add_.Tensor-op0"].attrs or {} for number in range(4)]
    assert [str(attrs["alpha"]) for attrs in alphas] == ["-0.1", "-0.1", "nan", "-0.1"]


def test_a_number_that_the_script_wrote_is_meant(tmp_path: Path) -> None:
    def step(number: int, y: Any) -> Any:
        mask = torch.zeros(3)
        mask[2] = -torch.inf
        return torch.softmax(y + mask, -1).square().sum()

    assert watched(tmp_path, step).first is None


def test_what_two_parts_of_a_step_make_at_one_line_is_kept_apart(tmp_path: Path) -> None:
    """The data of all but the first batch are made behind a backward pass, by an operator of the same name."""
    net = torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    batches = [torch.full((2, 3), float(number)) for number in range(1, 7)]
    with msdump.watch(net, config(tmp_path)):
        for number, batch in enumerate(batches):
            net(batch.sqrt()).sum().backward()
            if number % 3 == 2:
                optimizer.step()
                optimizer.zero_grad()
    for iteration in range(2):
        for call in range(3):
            if (iteration, call) == (0, 0):
                continue  # made before the first call of the model, which is not dumped
            (read,) = [
                tensor.load()
                for tensor in msdump.open(tmp_path).tensors(graph=0, iteration=iteration, io="input")
                if tensor.op_name.endswith(f"aten.addmm.default-op{call}") and tensor.slot == 1
            ]
            assert (read == batches[3 * iteration + call].sqrt().numpy()).all()
    origin = graph_of(tmp_path, 1).by_name["aten.addmm.default-op1"].inputs[1]
    assert origin is not None and origin.maker is not None and origin.maker[0] == 2


def test_a_nan_of_the_data_of_an_accumulated_batch_is_found_where_it_is_made(tmp_path: Path) -> None:
    net = torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    with msdump.watch(net, config(tmp_path)):
        for number in range(6):
            x = torch.full((2, 3), -1.0 if number == 4 else 1.0)
            net(x.sqrt()).sum().backward()
            if number % 3 == 2:
                optimizer.step()
                optimizer.zero_grad()
    first = find_non_finite(tmp_path).first
    assert first is not None and first.operator.label.endswith("aten.sqrt.default-op0") and first.how == "made"
    assert first.step.iteration == 1


def test_an_operator_that_has_only_raised_stops_no_script(tmp_path: Path) -> None:
    """With other numbers each time, which the file of the iterations would tell."""
    net = torch.nn.Linear(3, 3)
    with msdump.watch(net, config(tmp_path)) as watch:
        for number in range(3):
            y = net(torch.ones(2, 3))
            with pytest.raises(RuntimeError):
                torch.add(y, torch.ones(5), alpha=float(number))
            y.sum().backward()
    report = watch.report()
    assert report is not None and not report.error and report.iterations_dumped == 3


def test_a_view_in_the_backward_pass_has_made_no_weight(tmp_path: Path) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 2))
    with msdump.watch(net, config(tmp_path)):
        for _ in range(2):
            net(torch.ones(2, 3)).sum().backward()  # its transpose of a transpose is the weight
    read = [origin for node in graph_of(tmp_path, 1).nodes for origin in node.inputs if origin is not None]
    weights = [origin for origin in read if origin.name.endswith("weight")]
    assert [origin.maker for origin in weights] == [None, None]
    turned = next(node for node in graph_of(tmp_path, 1, 1).nodes if node.inputs[0] and node.inputs[0].name == "self_1")
    assert turned.inputs[0] is not None and turned.inputs[0].maker is not None
    assert turned.inputs[0].maker[:2] == (0, "Default/1-Linear/aten.t.default-op1")
