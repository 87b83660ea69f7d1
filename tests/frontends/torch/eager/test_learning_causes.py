"""What is found in trainings whose values, and not whose parameters, are wrong: on both sides of thresholds."""

from __future__ import annotations

from pathlib import Path

import pytest

from msdump.analysis.learning.kinds import LearningFinding

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import msdump  # noqa: E402
from tests.frontends.torch.eager.test_learning import (  # noqa: E402, F401
    Two,
    dispatch_mode,
    findings,
    learned,
    pytestmark,
    seed,
    train,
)
from tests.frontends.torch.eager.test_watch import config  # noqa: E402


def test_infinite_gradients_that_a_scaler_skips(tmp_path: Path) -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**126, backoff_factor=2.0**-60)
    model = nn.Sequential(*(nn.Linear(3, 3, bias=False) for _ in range(4)))
    with torch.no_grad():
        model[0].weight.mul_(1e-4)

    def scaled(model: nn.Module, optimizer: torch.optim.Optimizer, _: int) -> None:
        optimizer.zero_grad()
        scaler.scale(model(100 * torch.randn(5, 3)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()

    learning = learned(tmp_path, model, scaled, steps=3, rate=1e-5)
    assert learning.optimizers[0].skipped == ((0, 0),)
    assert findings(tmp_path) == ()


@pytest.mark.parametrize(("steps", "met", "is_found"), [(4, 0, True), (3, 0, False), (6, 1, False)])
def test_a_mask_that_no_element_meets(steps: int, met: int, is_found: bool, tmp_path: Path) -> None:
    def masked(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
        optimizer.zero_grad()
        words = torch.randint(1, 9, (5, 1)) * (step >= met)
        each = model(torch.randn(5, 3)).square()
        mask = (words == 0).float()
        ((each * mask).sum() / mask.sum().clamp(min=1)).backward()
        optimizer.step()

    learned(tmp_path, Two(), masked, steps)
    found = findings(tmp_path)
    assert [one.kind for one in found] == ["zero gradient"] * is_found
    assert all(one.line is not None and "words == 0" in one.line.code for one in found)


class Scaled(nn.Module):
    """Reads a parameter `how`, in one of several ways."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.body, self.scale, self.how = Two(), nn.Parameter(torch.tensor(0.3)), how

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.body(x)
        scale = self.scale.exp()
        if self.how == "item":
            return y * scale.item()
        if self.how == "copied":
            return y * torch.tensor([scale])
        if self.how in ("printed", "written"):
            print(scale.item())
        return y * 1.3498588 if self.how == "written" else y


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("item", "y * scale.item()"),
        ("copied", "torch.tensor([scale])"),
        ("printed", ""),
        ("written", ""),
        ("unread", ""),
    ],
)
def test_a_parameter_that_is_read_as_a_number(how: str, code: str, tmp_path: Path) -> None:
    learned(tmp_path, Scaled(how), train)
    found: tuple[LearningFinding, ...] = findings(tmp_path)
    assert [(one.kind, one.parameters, one.how) for one in found] == [("no gradient", ("scale",), "number")] * bool(
        code
    )
    assert all(one.line is not None and code in one.line.code for one in found)


@pytest.mark.parametrize(
    ("how", "steps", "is_found"),
    [("cast", 4, True), ("cast", 3, False), ("one other", 5, False), ("written", 5, False)],
)
def test_labels_that_are_one_class(how: str, steps: int, is_found: bool, tmp_path: Path) -> None:
    model = nn.Linear(3, 5)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with msdump.watch(model, config(tmp_path, saved_data="statistic")):
        for step in range(steps):
            score = torch.rand(6) * (1.5 if how == "one other" and step == 2 else 0.9)
            score[0] = 1.2 if how == "one other" and step == 2 else 0.1
            labels = torch.zeros(6, dtype=torch.int64) if how == "written" else score.long() * 3
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(torch.randn(6, 3)), labels).backward()
            optimizer.step()
    found = findings(tmp_path)
    assert [(one.kind, one.last) for one in found] == [("one class", 3)] * is_found
    assert all(one.line is not None and "score.long()" in one.line.code for one in found)


@pytest.mark.parametrize(
    ("factor", "last", "is_found"), [(2.0, 17.0, True), (1.5, 17.0, False), (1.0, 17.0, False), (2.0, 15.0, False)]
)
def test_a_loss_that_grows_with_the_rate(factor: float, last: float, is_found: bool, tmp_path: Path) -> None:
    sizes = (5.0, 4.0, 6.0, 8.0, 12.0, last)

    def faster(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
        optimizer.param_groups[0]["lr"] = 0.01 * factor**step
        optimizer.zero_grad()
        (sizes[step] * (1 + 1e-3 * model(torch.randn(5, 3)).square().mean())).backward()
        optimizer.step()

    learned(tmp_path, Two(), faster, len(sizes))
    found = findings(tmp_path)
    assert [(one.kind, one.first, one.last) for one in found] == [("grows", 2, 5)] * is_found
    assert all((one.numbers["rate before"], one.numbers["rate"]) == (0.01, 0.16) for one in found)


@pytest.mark.parametrize("is_saturated", [True, False])
def test_a_generator_that_is_called_in_the_iteration_before(is_saturated: bool, tmp_path: Path) -> None:
    maker, critic = nn.Linear(3, 4), nn.Linear(4, 1)
    makers, critics = (torch.optim.SGD(model.parameters(), 0.01) for model in (maker, critic))
    with msdump.watch(None, config(tmp_path)):
        for step in range(4):
            scale = 1000.0 if is_saturated and step > 1 else 1.0
            fake = torch.tanh(scale * (2 + maker(torch.rand(5, 3))))
            critics.zero_grad()
            critic(fake.detach()).mean().backward()
            critics.step()
            makers.zero_grad()
            critic(fake).mean().neg().backward()
            makers.step()
    rows = {row.name: row for row in msdump.open(tmp_path, strict=True).learning[0].parameters}
    row = rows["weight"]
    assert (row.shape, row.optimizer) == ((4, 3), 1)
    spans = [row.at(at) for at in range(6)]
    assert [span is not None and span.operator is not None for span in spans] == [False, True] * 3
    found = findings(tmp_path)
    assert [(one.kind, one.first) for one in found] == [("zero gradient", 5)] * is_saturated
    assert all(one.line is not None and "torch.tanh" in one.line.code for one in found)


@pytest.mark.parametrize(("layers", "factor", "is_found"), [(6, 7.0, True), (6, 6.0, False), (9, 3.5, False)])
def test_values_that_grow_from_layer_to_layer(layers: int, factor: float, is_found: bool, tmp_path: Path) -> None:
    model = nn.Sequential(*(nn.Linear(8, 8, bias=False) for _ in range(layers)))
    with torch.no_grad():
        for layer in model:
            nn.init.orthogonal_(layer.weight).mul_(factor)

    def descend(model: nn.Module, optimizer: torch.optim.Optimizer, _: int) -> None:
        optimizer.zero_grad()
        (model(torch.randn(5, 8)) / factor**layers).mean().backward()
        optimizer.step()

    learned(tmp_path, model, descend, steps=3, rate=1e-3)
    found = findings(tmp_path)
    ends = ("1.weight", "0.weight", "5.weight")
    assert [(one.kind, one.how, one.parameters) for one in found] == [("depth", "values", ends)] * is_found
    assert all(one.numbers["ratio"] == pytest.approx(factor, rel=1e-3) for one in found)


class Mean(nn.Module):
    """Keeps a mean of what it reads, in one of several ways."""

    mean: torch.Tensor

    def __init__(self, how: str) -> None:
        super().__init__()
        self.body, self.how = Two(), how
        self.register_buffer("mean", torch.ones(1, 3))
        self.kept = torch.zeros(1, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            mean = x.mean(0, keepdim=True)
            if self.how == "lerp":
                self.mean.lerp(mean, 0.3)
            elif self.how == "sum":
                self.mean.mul(0.7).add(mean, alpha=0.3)
            elif self.how == "written":
                self.mean.lerp_(mean, 0.3)
            elif self.how == "taken":
                x = x - self.mean.lerp(mean, 0.3)
            elif self.how == "kept":
                self.kept = self.mean * 0.3 + self.kept * 0.7
        result: torch.Tensor = self.body(x - self.mean)
        return result


@pytest.mark.parametrize(
    ("how", "steps", "code"),
    [
        ("lerp", 4, "lerp(mean, 0.3)"), ("lerp", 3, ""), ("sum", 4, ".add(mean"),
        ("written", 4, ""), ("taken", 4, ""), ("kept", 4, ""), ("constant", 4, ""),
    ],
)  # fmt: skip
def test_a_buffer_whose_new_value_is_thrown_away(how: str, steps: int, code: str, tmp_path: Path) -> None:
    learned(tmp_path, Mean(how), train, steps)
    found = findings(tmp_path)
    assert [(one.kind, one.parameters, one.first) for one in found] == [("thrown away", ("mean",), 0)] * bool(code)
    assert all(one.line is not None and code in one.line.code for one in found)
