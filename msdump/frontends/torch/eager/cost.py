"""What a dump takes of the time of a program that runs operator by operator, callbacks included."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, cast

from msdump.process.report import StepTimes

_R = TypeVar("_R")
_Method = TypeVar("_Method", bound=Callable[..., Any])
clock = time.perf_counter
_MOST_WAYS = 2000


class StepCost:
    """Of one program. Its time is the script's, but between `enter` and `leave`, and on PyTorch's way from one operator
    to the next, which leads through Python: without a dump that takes next to nothing, as a rule.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._since = self._left = self._own = 0.0
        # When the step began, whether it is dumped, and what was taken by then.
        self._step: tuple[float, bool, float] | None = None
        # Of the step: how many operators were shown, and how long it took from one to the next.
        self._calls = 0
        self._ways: list[float] = []
        # Of steps that have ended: what they took, and what was taken of that.
        self._dumped: list[tuple[float, float]] = []
        self._plain: list[float] = []

    def enter(self, is_operator: bool = False) -> None:
        if self._depth == 0:
            self._since = clock()
            if is_operator:
                self._calls += 1
                if len(self._ways) < _MOST_WAYS:
                    self._ways.append(self._since - self._left)
        self._depth += 1

    def leave(self) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._left = clock()
            self._own += self._left - self._since

    def of_script(self, function: Callable[..., _R], args: Sequence[object], keywords: Mapping[str, object]) -> _R:
        """What a function of the script's returns, whose time is the script's; between `enter` and `leave`."""
        self.leave()
        try:
            return function(*args, **keywords)
        finally:
            self.enter()

    def begin_step(self, is_dumped: bool) -> None:
        """An iteration begins, and the one before it ends; between `enter` and `leave`."""
        self._end(self._since)
        self._step = self._since, is_dumped, self._own

    def end_step(self) -> None:
        """It ended with the last thing that was heard of."""
        self._end(self._left)

    def _end(self, now: float) -> None:
        step, self._step = self._step, None
        way = statistics.median(self._ways) if self._ways else 0.0
        calls, self._calls = self._calls, 0
        self._ways.clear()
        if step is None or now <= step[0]:
            return
        began, is_dumped, own = step
        if is_dumped:
            self._dumped.append((now - began, min(self._own - own + calls * way, now - began)))
        else:
            self._plain.append(now - began)

    def so_far(self) -> StepTimes | None:
        """None where no step has ended that was dumped."""
        if not self._dumped:
            return None
        seconds, own = (sum(times) for times in zip(*self._dumped, strict=True))
        usual = statistics.median(step for step, _ in self._dumped)
        return StepTimes(
            len(self._dumped), seconds, own, usual, statistics.median(self._plain) if self._plain else None
        )


class _HasCost(Protocol):
    cost: StepCost


def taken(method: _Method) -> _Method:
    """A method of a program whose time the dump takes."""

    @functools.wraps(method)
    def timed(self: _HasCost, *args: object) -> object:
        self.cost.enter()
        try:
            return method(self, *args)
        finally:
            self.cost.leave()

    return cast(_Method, timed)
