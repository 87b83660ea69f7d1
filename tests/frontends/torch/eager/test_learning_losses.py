"""What is found in trainings whose loss, data or steps are wrong: on both sides of thresholds."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import msdump  # noqa: E402
from msdump.analysis.learning.words import sentence  # noqa: E402
from tests.frontends.torch.eager.test_learning import (  # noqa: E402, F401
    dispatch_mode,
    findings,
    pytestmark,
    seed,
)
from tests.frontends.torch.eager.test_watch import config  # noqa: E402


def kinds(folder: Path) -> list[str]:
    found = findings(folder)
    assert all(str(sentence(one)) for one in found)
    return [one.how or one.kind for one in found]


def run(folder: Path, model: nn.Module, loss_of: object, steps: int, optimizer: torch.optim.Optimizer) -> list[str]:
    with msdump.watch(model, config(folder, saved_data="statistic")):
        for step in range(steps):
            optimizer.zero_grad()
            loss_of(step).backward()  # type: ignore[operator]
            optimizer.step()
    return kinds(folder)


def sgd(model: nn.Module, rate: float = 0.01) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), rate)


def net(outputs: int = 3) -> nn.Module:
    return nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, outputs))


@pytest.mark.parametrize(
    ("how", "steps", "found"),
    [
        ("twice", 4, ["twice"]), ("twice", 3, []), ("scaled", 4, []), ("logarithm", 4, []),
        ("scores", 4, ["no logarithm"]), ("axis", 4, ["axis"]),
    ],
)  # fmt: skip
def test_what_a_loss_is_not_made_for(how: str, steps: int, found: list[str], tmp_path: Path) -> None:
    model = net()

    def loss_of(_: int) -> torch.Tensor:
        scores, labels = model(torch.randn(6, 3)), torch.randint(0, 3, (6,))
        if how in ("twice", "scaled"):
            shares = scores.softmax(1)
            return functional.cross_entropy(5 * shares if how == "scaled" else shares, labels)
        if how == "logarithm":
            return functional.cross_entropy(scores.log_softmax(1), labels)
        return functional.nll_loss(5 + scores if how == "scores" else scores.log_softmax(0), labels)

    assert run(tmp_path, model, loss_of, steps, sgd(model)) == found


@pytest.mark.parametrize(("rows", "is_column", "is_found"), [(4, False, True), (3, False, False), (4, True, False)])
def test_a_column_that_meets_a_row(rows: int, is_column: bool, is_found: bool, tmp_path: Path) -> None:
    model = net(1)

    def loss_of(_: int) -> torch.Tensor:
        wanted = torch.randn(rows, 1) if is_column else torch.randn(rows)
        loss: torch.Tensor = (model(torch.randn(rows, 3)) - wanted).square().mean()
        return loss

    assert run(tmp_path, model, loss_of, 4, sgd(model)) == ["shapes"] * is_found


@pytest.mark.parametrize(("mean", "is_found"), [(1.5, True), (0.9, False)])
def test_targets_out_of_reach(mean: float, is_found: bool, tmp_path: Path) -> None:
    model = net(1).append(nn.Sigmoid())  # type: ignore[operator]
    found = run(
        tmp_path,
        model,
        lambda _: functional.mse_loss(model(torch.randn(5, 3)), mean + torch.zeros(5, 1)),
        4,
        sgd(model),
    )
    assert found == ["reach"] * is_found


@pytest.mark.parametrize(("values", "is_found"), [((1.0, 1.0), True), ((1.0, 2.0), False)])
def test_inputs_that_are_one_number(values: tuple[float, float], is_found: bool, tmp_path: Path) -> None:
    model, x = net(), torch.ones(40, 3)
    x[20:] = values[1]

    def loss_of(_: int) -> torch.Tensor:
        chosen = torch.cat([torch.randint(0, 20, (4,)), torch.randint(20, 40, (4,))])
        return functional.cross_entropy(model(x[chosen]), torch.randint(0, 3, (8,)))

    assert run(tmp_path, model, loss_of, 5, sgd(model)) == ["one value"] * is_found


@pytest.mark.parametrize(("rows", "steps", "is_found"), [(32, 10, True), (24, 10, False), (32, 8, False)])
def test_rows_that_are_the_same(rows: int, steps: int, is_found: bool, tmp_path: Path) -> None:
    model, x, y = net(), torch.randn(rows, 3), torch.randint(0, 3, (rows,))
    found = run(tmp_path, model, lambda _: functional.cross_entropy(model(x[:8]), y[:8]), steps, sgd(model))
    assert found == ["same rows"] * is_found


@pytest.mark.parametrize(("passes", "is_made", "is_found"), [(16, True, True), (15, True, False), (16, False, False)])
def test_an_optimizer_that_never_makes_a_step(passes: int, is_made: bool, is_found: bool, tmp_path: Path) -> None:
    model = net()
    optimizer = sgd(model) if is_made else None
    with msdump.watch(model, config(tmp_path, saved_data="statistic")):
        for _ in range(passes):
            model(torch.randn(5, 3)).mean().backward()
    assert kinds(tmp_path) == ["never stepped"] * is_found
    del optimizer


@pytest.mark.parametrize(
    ("begin", "behind", "parts", "is_found"), [(2, 8, 1, True), (2, 7, 1, False), (1, 8, 1, False), (2, 8, 2, False)]
)
def test_most_is_frozen_in_the_middle(begin: int, behind: int, parts: int, is_found: bool, tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(3, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))

    def loss_of(step: int) -> torch.Tensor:
        model[: 4 if parts == 1 else 1].requires_grad_(step < begin)
        loss: torch.Tensor = model(torch.randn(5, 3)).square().mean()
        return loss

    assert run(tmp_path, model, loss_of, begin + behind, sgd(model)) == ["frozen"] * is_found


@pytest.mark.parametrize(("is_frozen", "is_found"), [(True, True), (False, False)])
def test_half_of_what_is_not_frozen(is_frozen: bool, is_found: bool, tmp_path: Path) -> None:
    class Adapted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.base = nn.Linear(3, 3).requires_grad_(not is_frozen)
            self.down, self.up = (nn.Parameter(torch.randn(3, 3)) for _ in range(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.base(x) + x @ self.down @ self.up
            return result

    model = Adapted()
    optimizer = torch.optim.SGD([model.down], 0.01)
    found = run(tmp_path, model, lambda _: model(torch.randn(5, 3)).square().mean(), 4, optimizer)
    assert found == ["no optimizer"] * is_found


@pytest.mark.parametrize(("low", "is_found"), [(1e-4, True), (2e-4, False)])
def test_a_rate_that_falls_at_once(low: float, is_found: bool, tmp_path: Path) -> None:
    model = net()
    optimizer = sgd(model, 0.1)

    def loss_of(step: int) -> torch.Tensor:
        optimizer.param_groups[0]["lr"] = 0.1 if step < 3 else low
        return functional.cross_entropy(model(torch.randn(5, 3)), torch.randint(0, 3, (5,)))

    assert run(tmp_path, model, loss_of, 14, optimizer) == ["rate falls"] * is_found


@pytest.mark.parametrize(("steps", "name", "is_found"), [(8, "Adam", True), (7, "Adam", False), (8, "SGD", False)])
def test_an_optimizer_that_is_made_anew(steps: int, name: str, is_found: bool, tmp_path: Path) -> None:
    model = net()
    with msdump.watch(model, config(tmp_path, saved_data="statistic")):
        for _ in range(steps):
            optimizer = getattr(torch.optim, name)(model.parameters(), 0.01)
            optimizer.zero_grad()
            functional.cross_entropy(model(torch.randn(5, 3)), torch.randint(0, 3, (5,))).backward()
            optimizer.step()
    assert kinds(tmp_path) == ["made anew"] * is_found


@pytest.mark.parametrize(("decay", "is_found"), [(20.0, True), (1.0, False)])
def test_a_decay_that_takes_too_much(decay: float, is_found: bool, tmp_path: Path) -> None:
    model = net()
    optimizer = torch.optim.AdamW(model.parameters(), 0.01, weight_decay=decay)
    found = run(tmp_path, model, lambda _: model(torch.randn(5, 3)).square().mean(), 10, optimizer)
    assert found == ["decays"] * is_found


@pytest.mark.parametrize(("momentum", "is_found"), [(1.05, True), (0.99, False)])
def test_steps_that_grow(momentum: float, is_found: bool, tmp_path: Path) -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.001, momentum=momentum)
    found = run(tmp_path, model, lambda _: model(torch.randn(5, 3)).square().mean(), 6, optimizer)
    assert found == ["steps grow"] * is_found


@pytest.mark.parametrize(("rate", "steps", "is_found"), [(1e-7, 8, True), (1e-5, 8, False), (1e-7, 7, False)])
def test_steps_that_are_far_too_small(rate: float, steps: int, is_found: bool, tmp_path: Path) -> None:
    model = net()
    with torch.no_grad():
        for each in model.parameters():
            each.copy_(torch.where(each < 0, -1.0, 1.0) * (1 + torch.rand_like(each)))
    optimizer = torch.optim.Adam(model.parameters(), rate)
    found = run(tmp_path, model, lambda _: model(torch.randn(5, 3)).square().mean(), steps, optimizer)
    assert ("small" in found) == is_found


@pytest.mark.parametrize(("apart", "is_found"), [(0.0, True), (0.1, False)])
def test_units_that_are_all_alike(apart: float, is_found: bool, tmp_path: Path) -> None:
    model = net(1)
    with torch.no_grad():
        for each in model.parameters():
            each.copy_(0.1 + apart * torch.randn_like(each))
    found = run(tmp_path, model, lambda _: (model(torch.randn(5, 3)) - 1).square().mean(), 5, sgd(model))
    assert found == ["start"] * is_found
    for one in findings(tmp_path):
        assert one.parameters == ("0.weight", "2.weight")
        assert one.line is not None and "model(torch.randn(5, 3))" in one.line.code


def test_units_that_become_alike(tmp_path: Path) -> None:
    """Weights that begin apart are not named."""
    model = net(1)
    optimizer = sgd(model)
    optimizer.register_step_post_hook(lambda *_: model[0].bias.data.fill_(model[0].bias.data.mean()))
    assert run(tmp_path, model, lambda _: (model(torch.randn(5, 3)) - 1).square().mean(), 5, optimizer) == ["all alike"]


@pytest.mark.parametrize(("factor", "is_found"), [(1.25, True), (1.02, False)])
def test_a_loss_that_rises(factor: float, is_found: bool, tmp_path: Path) -> None:
    model = nn.Linear(3, 1)

    def loss_of(step: int) -> torch.Tensor:
        return functional.mse_loss(0.01 * model(torch.ones(5, 3)), factor**step * torch.ones(5, 1))

    assert run(tmp_path, model, loss_of, 12, sgd(model)) == ["grows"] * is_found
