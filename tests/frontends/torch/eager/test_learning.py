"""What a dump of PyTorch tells of gradients and optimizers, and what is found in it, on both sides of thresholds."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import msdump  # noqa: E402
from msdump.analysis.find.nan import find_non_finite  # noqa: E402
from msdump.analysis.learning.kinds import LearningFinding  # noqa: E402
from msdump.analysis.learning.words import details, sentence  # noqa: E402
from msdump.config.environment import NATIVE  # noqa: E402
from msdump.formats.learning_json import Learning  # noqa: E402
from tests.frontends.torch.eager.test_watch import config, pytestmark  # noqa: E402

# The compiled observer records no cuts, no strays and no makers of gradients.
pytestmark = [*(pytestmark if isinstance(pytestmark, list) else [pytestmark]), pytest.mark.usefixtures("dispatch_mode")]

Train = Callable[[nn.Module, torch.optim.Optimizer, int], None]


@pytest.fixture(autouse=True)
def seed() -> None:
    """Some draws of weights have faults of their own, such as gradients that vanish."""
    torch.manual_seed(0)


@pytest.fixture
def dispatch_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NATIVE, "0")


def test_the_compiled_observer_tells_nothing_of_a_healthy_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(NATIVE)
    learned(tmp_path, Two(), train)
    assert findings(tmp_path) == ()


class Two(nn.Module):
    def __init__(self, cut: str = "") -> None:
        super().__init__()
        self.first, self.second, self.cut = nn.Linear(3, 4), nn.Linear(4, 1), cut

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.set_grad_enabled(self.cut != "no_grad"):
            y = torch.tanh(self.first(x))
        result: torch.Tensor = self.second(y.detach() if self.cut == "detach" else y)
        return result


def train(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
    optimizer.zero_grad()
    model(torch.randn(5, 3)).square().mean().backward()
    optimizer.step()


def learned(folder: Path, model: nn.Module, train: Train, steps: int = 4, rate: float = 0.01) -> Learning:
    optimizer = torch.optim.SGD(model.parameters(), rate)
    with msdump.watch(model, config(folder)):
        for step in range(steps):
            train(model, optimizer, step)
    return msdump.open(folder, strict=True).learning[0]


def findings(folder: Path) -> tuple[LearningFinding, ...]:
    found = find_non_finite(folder).learning
    assert all(sentence(one) and isinstance(details(one), list) for one in found)
    return found


def test_healthy_training_is_recorded_and_says_nothing(tmp_path: Path) -> None:
    learning = learned(tmp_path, Two(), train)
    assert learning.backwards == ((0, 3),) and learning.cuts == () and learning.strays == ()
    (optimizer,) = learning.optimizers
    assert (optimizer.steps, optimizer.rates, optimizer.kept, optimizer.cleared) == (((0, 3),), ((0, 0.01),), 0, 3)
    assert [row.name for row in learning.parameters] == ["first.weight", "first.bias", "second.weight", "second.bias"]
    for row in learning.parameters:
        (span,) = row.spans
        assert row.optimizer == 0 and span.asks and span.has and (span.operator or "").startswith("Gradients/")
    assert findings(tmp_path) == ()


@pytest.mark.parametrize("how", ["detach", "no_grad"])
def test_what_is_cut_off_is_named_with_its_line(how: str, tmp_path: Path) -> None:
    learning = learned(tmp_path, Two(how), train)
    assert {cut.how for cut in learning.cuts} == {how}
    (found,) = findings(tmp_path)
    assert (found.kind, found.parameters, found.how) == ("no gradient", ("first.weight", "first.bias"), how)
    assert found.line is not None and how.replace("no_grad", "tanh") in found.line.code


def test_one_backward_pass_tells_nothing(tmp_path: Path) -> None:
    learned(tmp_path, Two("detach"), train, steps=1)
    assert findings(tmp_path) == ()


@pytest.mark.parametrize(("zeros", "is_found"), [(1, False), (2, True)])
def test_a_gradient_of_zero_in_the_last_two_iterations(zeros: int, is_found: bool, tmp_path: Path) -> None:
    def some_masked(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
        optimizer.zero_grad()
        keep = torch.full((5, 1), float(step < 4 - zeros))
        (torch.where(keep > 0, model(torch.randn(5, 3)), 3.0).square().mean()).backward()
        optimizer.step()

    learned(tmp_path, Two(), some_masked)
    found = findings(tmp_path)
    assert bool(found) == is_found
    if found:
        assert (found[0].kind, found[0].first, found[0].last) == ("zero gradient", 2, 3)


@pytest.mark.parametrize(("steps", "is_found"), [(3, False), (4, True)])
def test_a_rate_of_zero(steps: int, is_found: bool, tmp_path: Path) -> None:
    def without_rate(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
        optimizer.param_groups[0]["lr"] = 0.1 if step < 2 else 0.0
        train(model, optimizer, step)

    learned(tmp_path, Two(), without_rate, steps)
    assert [(one.kind, one.how, one.first) for one in findings(tmp_path)] == [("stands still", "rate", 2)] * is_found


def test_who_is_stepped_by_nobody(tmp_path: Path) -> None:
    model = Two()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model.second = nn.Linear(4, 1)
    with msdump.watch(model, config(tmp_path)):
        for step in range(3):
            train(model, optimizer, step)
            model.zero_grad()
    (found,) = findings(tmp_path)
    assert (found.kind, found.parameters) == ("no optimizer", ("second.weight", "second.bias"))
    assert found.outside == ((1, 4), (1,)) and "step()" in (found.line.code if found.line else "")


def test_gradients_that_are_gone_or_that_stay(tmp_path: Path) -> None:
    def too_early(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
        model(torch.randn(5, 3)).square().mean().backward()
        optimizer.zero_grad()
        optimizer.step()

    def never(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
        model(torch.randn(5, 3)).square().mean().backward()
        optimizer.step()

    learned(tmp_path / "early", Two(), too_early)
    learned(tmp_path / "never", Two(), never)
    assert [one.kind for one in findings(tmp_path / "early")] == ["cleared too early"]
    assert [one.kind for one in findings(tmp_path / "never")] == ["never cleared"]


@pytest.mark.parametrize("is_stepped", [False, True])
def test_gradients_of_one_loss_that_the_next_one_clears(is_stepped: bool, tmp_path: Path) -> None:
    class Heads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.one, self.other = nn.Linear(3, 4), nn.Linear(4, 1), nn.Linear(4, 1)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            y = torch.tanh(self.body(x))
            return self.one(y), self.other(y.detach() if is_stepped else y)

    def in_turn(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
        one, other = model(torch.randn(5, 3))
        optimizer.zero_grad()
        one.square().mean().backward(retain_graph=True)
        if is_stepped:
            optimizer.step()
        optimizer.zero_grad()
        other.square().mean().backward()
        optimizer.step()

    learned(tmp_path, Heads(), in_turn)
    found = findings(tmp_path)
    assert [(one.kind, one.parameters) for one in found] == (
        [] if is_stepped else [("cleared too early", ("one.weight", "one.bias"))]
    )
    assert all(one.line is not None and "one.square().mean().backward" in one.line.code for one in found)


def test_layers_that_no_module_has(tmp_path: Path) -> None:
    class Hidden(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers, self.last = [nn.Linear(3, 3)], nn.Linear(3, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.last(torch.tanh(self.layers[0](x)))
            return result

    learning = learned(tmp_path, Hidden(), train)
    assert [stray.shape for stray in learning.strays] == [(3, 3), (3,)]
    (found,) = findings(tmp_path)
    assert found.kind == "not in the model" and found.line is not None and "layers[0]" in found.line.code


@pytest.mark.parametrize(
    ("how", "is_found"), [("plain", True), ("list", True), ("stepped", False), ("chosen", False), ("data", False)]
)
def test_a_plain_tensor_that_a_module_has(how: str, is_found: bool, tmp_path: Path) -> None:
    prompt = torch.randn(1, 3).requires_grad_()

    class Prompted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Linear(3, 1)
            self.prompt = [prompt] if how == "list" else None if how == "data" else prompt

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.body(torch.tanh(x + prompt))
            return result

    def prompted(model: nn.Module, optimizer: torch.optim.Optimizer, _: int) -> None:
        optimizer.zero_grad()
        loss = model(torch.randn(5, 3)).square().mean()
        if how == "chosen":
            loss = loss + torch.autograd.grad(loss, prompt, create_graph=True)[0].square().mean()
        loss.backward()
        optimizer.step()
        if how == "stepped":
            prompt.data -= 0.01 * prompt.grad

    learned(tmp_path, Prompted(), prompted)
    found = findings(tmp_path)
    assert [one.kind for one in found] == ["not in the model"] * is_found
    assert all(one.line is not None and "x + prompt" in one.line.code for one in found)


@pytest.mark.parametrize(("layers", "is_listed"), [(2, False), (4, True), (20, False)])
def test_many_parameters_are_counted_not_listed(tmp_path: Path, layers: int, is_listed: bool) -> None:
    """A line names four, the next one up to a dozen, and nothing prints a whole model."""

    def never_cleared(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
        model(torch.randn(5, 3)).square().mean().backward()
        optimizer.step()

    model = nn.Sequential(*(nn.Linear(3, 3) for _ in range(layers)))
    for layer in model:
        nn.init.orthogonal_(layer.weight)  # gradients of one size at every depth
    learned(tmp_path, model, never_cleared)
    (found,) = findings(tmp_path)
    assert len(found.parameters) == 2 * layers
    assert any(f"{layers - 1}.weight" in text for text in details(found)) == is_listed
    assert f"{2 * layers - 4} more" in sentence(found) or layers == 2


@pytest.mark.usefixtures("dispatch_mode")
@pytest.mark.parametrize(("steps", "is_found"), [(4, False), (5, True)])
def test_a_seed_in_the_loop(steps: int, is_found: bool, tmp_path: Path) -> None:
    def seeded(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
        torch.manual_seed(1)
        noise = torch.rand(5, 3)
        optimizer.zero_grad()
        model(noise * (step + 1)).square().mean().backward()
        optimizer.step()

    learned(tmp_path, Two(), seeded, steps)
    assert [(one.kind, one.first, one.operator.op_type) for one in findings(tmp_path)] == [
        ("repeats", 1, "aten_rand_default")
    ] * is_found


@pytest.mark.usefixtures("dispatch_mode")
@pytest.mark.parametrize(("start", "is_found"), [(0, True), (1, False)])
def test_weights_that_are_put_back(start: int, is_found: bool, tmp_path: Path) -> None:
    model, x = Two(), torch.randn(5, 3)
    weights = {name: each.clone() for name, each in model.state_dict().items()}

    def put_back(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
        model.load_state_dict(weights if step >= start else {name: 2 * each for name, each in weights.items()})
        optimizer.zero_grad()
        (model(x) - 1).square().mean().backward()
        optimizer.step()

    learned(tmp_path, model, put_back)
    assert [one.kind for one in findings(tmp_path)] == ["loss stands still"] * is_found


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.second(torch.tanh(self.norm(self.first(x))))
        return result


@pytest.mark.parametrize(("trained", "evaluated", "is_found"), [(2, 3, True), (2, 2, False), (1, 3, False)])
def test_a_model_that_is_left_in_evaluation(trained: int, evaluated: int, is_found: bool, tmp_path: Path) -> None:
    def step_of(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
        model.train(step < trained)
        optimizer.zero_grad()
        nn.MSELoss()(model(torch.randn(5, 3)), torch.ones(5, 1)).backward()
        optimizer.step()

    learning = learned(tmp_path, Normed(), step_of, trained + evaluated)
    assert learning.trainings == ((0, trained - 1),)
    found = findings(tmp_path)
    assert [(one.kind, one.first, one.last) for one in found] == [("in evaluation", trained, 4)] * is_found
    if found:
        assert found[0].parameters == ("norm.running_var", "norm.running_mean")
        assert "native_batch_norm" in found[0].operator.label
        assert found[0].line is not None and "self.norm" in found[0].line.code


@pytest.mark.parametrize(("steps", "is_found"), [(3, False), (4, True)])
def test_a_tensor_that_takes_the_place_of_another(steps: int, is_found: bool, tmp_path: Path) -> None:
    def assigned(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
        if step == 2:
            model.second = nn.Linear(4, 1)
        train(model, optimizer, step)
        model.zero_grad()

    learning = learned(tmp_path, Two(), assigned, steps)
    assert [row.since for row in learning.parameters] == [0, 0, 2, 2]
    assert [row.optimizer for row in learning.parameters] == [0, 0, None, None]
    assert learning.optimizers[0].outside == ((1, 4), (1,))
    found = findings(tmp_path)
    assert [(one.kind, one.parameters, one.first) for one in found] == [
        ("no optimizer", ("second.weight", "second.bias"), 2)
    ] * is_found


def test_a_tensor_that_is_given_to_the_optimizer_as_well(tmp_path: Path) -> None:
    def replaced(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
        if step == 2:
            model.second = nn.Linear(4, 1)
            optimizer.add_param_group({"params": list(model.second.parameters())})
        train(model, optimizer, step)

    learning = learned(tmp_path, Two(), replaced, 6)
    assert [(row.since, row.optimizer) for row in learning.parameters] == [(0, 0), (0, 0), (2, 0), (2, 0)]
    assert findings(tmp_path) == ()


@pytest.mark.parametrize("sizes", [(3, 4, 4, 1), (3, 4, 1)])
def test_depth_by_biases(sizes: tuple[int, ...], tmp_path: Path) -> None:
    """A bias before a normalisation has a gradient of rounding, a factor of a million or more below the next one; where
    the gradient falls from layer to layer, it is one."""
    layers: list[nn.Module] = []
    for inner, outer in itertools.pairwise(sizes):
        layers += [nn.Linear(inner, outer), nn.BatchNorm1d(outer)]
    learned(tmp_path / "norm", nn.Sequential(*layers[:-1]), train)
    assert findings(tmp_path / "norm") == ()
    linear = [*(nn.Linear(3, 3) for _ in range(3)), nn.Linear(3, 1)]
    for layer in linear:
        layer.weight.requires_grad_(False).mul_(1e-3)
    learned(tmp_path / "scaled", nn.Sequential(*linear), train)
    (found,) = findings(tmp_path / "scaled")
    assert (found.kind, found.how, found.parameters[1:]) == ("depth", "vanishes", ("0.bias", "3.bias"))


class Beside(nn.Module):
    """A frozen block beside a way around it: no gradient is 0 where the block is dead."""

    def __init__(self, act: nn.Module) -> None:
        super().__init__()
        self.first, self.act, self.second, self.last = nn.Linear(3, 8), act, nn.Linear(8, 3), nn.Linear(3, 1)
        nn.init.uniform_(self.first.weight, 0.5, 1.0)
        self.first.requires_grad_(False)
        self.second.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.last(x / 40 + self.second(self.act(self.first(x))))
        return result


@pytest.mark.parametrize(
    ("act", "dead", "value"), [(nn.ReLU(), 3, 0), (nn.ReLU(), 2, None), (nn.Sigmoid(), 3, 0), (nn.ReLU(), 5, None)]
)
def test_an_activation_that_dies(act: nn.Module, dead: int, value: int | None, tmp_path: Path) -> None:
    def shifted(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
        optimizer.zero_grad()
        x = torch.rand(5, 3) - (100.0 if step >= 5 - dead else 0.0)
        nn.L1Loss()(model(x), torch.ones(5, 1)).backward()
        optimizer.step()

    learned(tmp_path, Beside(act), shifted, 5, 1e-4)
    found = [(one.kind, one.first, one.numbers) for one in findings(tmp_path)]
    assert found == ([] if value is None else [("dead", 5 - dead, {"value": value})])


def test_what_a_loss_clamps_is_not_dead(tmp_path: Path) -> None:
    def hinge(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
        optimizer.zero_grad()
        y = model(torch.rand(5, 3))
        (y.square().mean() + nn.functional.relu(y - (-9.0 if step < 3 else 9.0)).mean()).backward()
        optimizer.step()

    learned(tmp_path, Two(), hinge, 6)
    assert findings(tmp_path) == ()


def test_a_loss_that_grows_in_columns_without_a_count(tmp_path: Path) -> None:
    model = Two()
    optimizer = torch.optim.SGD(model.parameters(), 30.0)
    columns = ["max", "min", "avg", "l2norm"]
    with msdump.watch(model, config(tmp_path, saved_data="statistic", statistic_category=columns)):
        for step in range(5):
            train(model, optimizer, step)
    found = findings(tmp_path)
    assert found and (found[0].kind, found[0].last) == ("grows", 4)
