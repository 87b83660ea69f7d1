"""Random programs under both engines: the same rows of each iteration, and the same training."""

from __future__ import annotations

import gc
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytest.importorskip("msdump_native")

from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import msdump  # noqa: E402
from msdump.config.environment import NATIVE  # noqa: E402
from msdump.frontends.torch.eager.stage import Call, Stage  # noqa: E402
from tests.frontends.torch.eager.native_rows import alike, rows  # noqa: E402
from tests.frontends.torch.eager.test_native import configuration  # noqa: E402


class Program:
    """Two models, each with an optimizer; each method is what one step may be."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))
        self.critic = nn.Linear(3, 1)
        self.optimizers = [
            torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9),
            torch.optim.AdamW(self.critic.parameters(), lr=0.01, foreach=False),
        ]
        self.x = torch.arange(8.0).reshape(2, 4) / 8

    def _loss(self) -> torch.Tensor:
        return self.model(self.x).square().mean()

    def _end(self, loss: torch.Tensor, *optimizers: int) -> torch.Tensor:
        loss.backward()
        for number in optimizers:
            self.optimizers[number].step()
            self.optimizers[number].zero_grad()
        return loss.detach()

    def plain(self) -> torch.Tensor:
        return self._end(self._loss(), 0)

    def accumulated(self) -> torch.Tensor:
        self._loss().backward()
        return self._end(self._loss() / 2, 0)

    def both(self) -> torch.Tensor:
        return self._end(self.critic(self.model(self.x)).sum(), 0, 1)

    def critic_alone(self) -> torch.Tensor:
        with torch.no_grad():
            hidden = self.model(self.x)
        return self._end(self.critic(hidden).square().sum(), 1)

    def evaluated(self) -> torch.Tensor:
        self.model.eval()
        with torch.no_grad():
            result = self.model(self.x).sum()
        self.model.train()
        return result

    def views(self) -> torch.Tensor:
        hidden = self.model(self.x).clone()
        hidden[:, 1].mul_(2.0)
        hidden.t()[0] += 1.0
        return self._end(hidden.view(-1).narrow(0, 1, 4).square().sum(), 0)

    def clipped(self) -> torch.Tensor:
        loss = self._loss()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 0.01)
        self.optimizers[0].step()
        self.optimizers[0].zero_grad()
        return loss.detach()

    def recomputed(self) -> torch.Tensor:
        return self._end(checkpoint(self.model, self.x.clone().requires_grad_(), use_reentrant=False).exp().sum(), 0)

    def other_memory(self) -> torch.Tensor:
        """A parameter lies elsewhere from here on, as after `half` or a restored checkpoint."""
        loss = self._loss()
        self.model[2].bias.data = self.model[2].bias.data.clone()
        return self._end(loss, 0)

    def other_tensor(self) -> torch.Tensor:
        """The model has another parameter of the same name, which the optimizer does not know."""
        self.model[0].bias = nn.Parameter(self.model[0].bias.detach() * 0.5)
        return self.plain()

    def other_size(self) -> torch.Tensor:
        x, self.x = self.x, self.x[:1]
        try:
            return self.plain()
        finally:
            self.x = x

    def broken_off(self) -> torch.Tensor:
        try:
            self._loss()
            raise ValueError("no data")
        except ValueError:
            return torch.zeros(())

    def in_a_thread(self) -> torch.Tensor:
        """What another thread computes is no part of the program."""
        thread = threading.Thread(target=lambda: torch.ones(3).mul(2.0).sum())
        thread.start()
        thread.join()
        return self.plain()


STEPS = [name for name in vars(Program) if not name.startswith("_")]


def losses_of(steps: list[str], program: Program | None = None) -> list[torch.Tensor]:
    own = program or Program()
    return [getattr(own, step)() for step in steps]


def dumped(folder: Path, steps: list[str], engine: str, patch: pytest.MonkeyPatch) -> list[torch.Tensor]:
    patch.setenv(NATIVE, engine)
    program = Program()  # whose memory is empty at first, which has other numbers each time
    with msdump.watch(config=configuration(folder)) as watch:
        losses = losses_of(steps, program)
    report = watch.report()
    assert report is not None and not report.error and not report.lost and not report.failure, report
    return losses


# Each twice at least, so that what runs again is told of as what is known.
programs = st.lists(st.sampled_from(STEPS), min_size=1, max_size=3).flatmap(
    lambda own: st.lists(st.sampled_from(own), min_size=4, max_size=8)
)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=programs)
def test_random_programs_have_the_same_rows(steps: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        native, mode = Path(folder, "native"), Path(folder, "mode")
        losses, expected = dumped(native, steps, "1", patch), dumped(mode, steps, "0", patch)
        for one, other, plain in zip(losses, expected, losses_of(steps), strict=True):
            assert torch.equal(one, other) and torch.equal(one, plain)
        ours, theirs = rows(native, has_unwritten=False), rows(mode, has_unwritten=False)
        assert ours.keys() == theirs.keys()
        for name in theirs:
            assert alike(ours[name]) == alike(theirs[name]), name


@pytest.mark.parametrize("step", STEPS)
def test_each_step_has_the_same_rows_again(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    losses = dumped(tmp_path / "native", [step] * 4, "1", monkeypatch)
    expected = dumped(tmp_path / "mode", [step] * 4, "0", monkeypatch)
    assert all(map(torch.equal, losses, expected))
    ours, theirs = (rows(tmp_path / each, has_unwritten=False) for each in ("native", "mode"))
    assert ours.keys() == theirs.keys()
    for name in theirs:
        assert alike(ours[name]) == alike(theirs[name]), name


def test_steps_that_repeat_leave_nothing_to_the_collector(tmp_path: Path) -> None:
    collections = 0

    def note(phase: str, _: object) -> None:
        nonlocal collections
        collections += phase == "start"

    program = Program()
    with msdump.watch(config=configuration(tmp_path)):
        for _ in range(6):
            program.plain()
        gc.callbacks.append(note)
        try:
            for _ in range(60):
                program.plain()
        finally:
            gc.callbacks.remove(note)
    # One begins when there are 700 objects more than at the last.
    assert collections <= 3


def count_anew(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many calls were told one by one."""
    count = 0
    original = Stage.show

    def show(self: Stage, call: Call) -> None:
        nonlocal count
        count += 1
        original(self, call)

    monkeypatch.setattr(Stage, "show", show)
    return lambda: count


@pytest.mark.parametrize("steps", [["plain"], ["plain", "accumulated"], ["both", "evaluated"]], ids="-".join)
def test_what_runs_again_is_known_again(steps: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = count_anew(monkeypatch)
    program = Program()
    with msdump.watch(config=configuration(tmp_path)):
        for number in range(6):
            for step in steps:
                getattr(program, step)()
            if number == 3:
                first = count()
        assert count() == first
