"""What the report says that a dump took of a step."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import msdump  # noqa: E402
from msdump.cli.report_text import report_rows  # noqa: E402
from msdump.config.environment import NATIVE  # noqa: E402
from msdump.frontends.torch.eager import cost  # noqa: E402
from msdump.process.report import Report, StepTimes  # noqa: E402
from tests.frontends.torch.eager.test_watch import config, pytestmark  # noqa: E402, F401


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def passes(self, *_: object, seconds: float = 1.0) -> None:
        self.now += seconds


def test_callbacks_and_the_way_to_them_are_taken_and_operators_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(cost, "clock", clock)
    steps = cost.StepCost()
    for is_dumped in (True, True, False):
        steps.enter()
        steps.begin_step(is_dumped)
        steps.leave()
        for _ in range(3 if is_dumped else 0):
            clock.passes(seconds=0.5)
            steps.enter(is_operator=True)
            clock.passes(seconds=2)
            steps.of_script(clock.passes, (), {})
            steps.leave()
        clock.passes(seconds=10)
    steps.enter()
    steps.leave()
    steps.end_step()
    times = steps.so_far()
    assert times == StepTimes(2, 2 * (3 * 3.5 + 10), 2 * 3 * 2.5, 20.5, 10)
    (text,) = (text for label, text in report_rows(Report("dump", steps=times)) if label == "time")
    assert text.startswith("37 % of a dumped step is msdump's: 15.00 s of 41.00 s in 2 steps; it takes 2.05 times")


def test_steps_that_are_not_dumped_are_plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(cost, "clock", clock)
    monkeypatch.setenv(NATIVE, "0")  # which is not timed
    net = torch.nn.Linear(3, 3)
    with msdump.watch(net, config(tmp_path, iteration="0|1")) as watch:
        for _ in range(4):
            net(torch.ones(2, 3)).sum().backward()
            clock.passes()
    # Nothing is heard of what follows the last step.
    assert watch.report().steps == StepTimes(2, 2.0, 0.0, 1.0, 1.0)
