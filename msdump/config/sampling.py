"""Sampling: of the iterations that a configuration names, each n-th, or as many as may cost a share of the time."""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from msdump.errors import ConfigError

_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)\s*%")
# Iterations without a dump of which the time is known before one is held against them, and that are looked back at.
_FEWEST, _MOST = 2, 9
# Iterations that are always dumped, and what comes between: the first one also pays for what is done once.
_FIRST = (0, 4)
_LONGEST = 1 << 20
_KEPT = 16


def _median(values: Iterable[float]) -> float:
    import statistics  # brings fractions and decimal, which commands that read a dump need not wait for

    return statistics.median(values)


@dataclass(frozen=True)
class Sampling:
    """every   distance between two iterations, 1 for all
    budget  share of the time that dumps may take, 0.05 for a twentieth; 0: none is set
    """

    every: int = 1
    budget: float = 0.0

    def __str__(self) -> str:
        return f"{100 * self.budget:g}%" if self.budget else str(self.every)


def parse_sampling(text: str, where: str) -> Sampling:
    """`"10"` or `"5%"`.   Raises: ConfigError, which names `where`."""
    stripped = text.strip()
    if _NUMBER.fullmatch(stripped):
        return Sampling(every=int(stripped))
    match = _PERCENT.fullmatch(stripped)
    if match and 0 < float(match[1]) <= 100:
        return Sampling(budget=float(match[1]) / 100)
    raise ConfigError(
        f'{where}: expected a number such as 10, for each tenth iteration, or a share of the time such as "5%", '
        f'got "{text[:80]}". Correct it.'
    )


class Sampler:
    """Decides once for each iteration, when it is first asked, which is where the iteration begins.

    With a budget the distance between two dumps is a power of two, and the iterations are its multiples: ranks that
    come to other distances still have iterations in common.

    clock   seconds, by which iterations are measured
    """

    def __init__(
        self, sampling: Sampling, initial_iteration: int = 0, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.sampling = sampling
        self.distance = sampling.every
        self._initial = initial_iteration
        self._clock = clock
        self._lock = threading.Lock()
        self._last: int | None = None
        self._is_taken = False
        # What was said of the last ones: several graphs may run by turns.
        self._answers: OrderedDict[int, bool] = OrderedDict()
        self._began = 0.0
        self._plain: deque[float] = deque(maxlen=_MOST)
        self._dumped: deque[float] = deque(maxlen=3)
        # Of all iterations that have ended, and of those that were dumped.
        self._seconds = self._dumped_seconds = 0.0
        self._dumped_count = 0

    def takes(self, iteration: int) -> bool:
        """Whether it is dumped."""
        with self._lock:
            known = self._answers.get(iteration)
            if known is not None:
                return known
            now = self._clock()
            if self._last is not None and iteration == self._last + 1:
                self._note(now - self._began)
            self._last, self._began = iteration, now
            self._is_taken = self._answers[iteration] = self._decides(iteration - self._initial)
            if len(self._answers) > _KEPT:
                self._answers.popitem(last=False)
            return self._is_taken

    def notes(self) -> tuple[str, ...]:
        """What the report says of it."""
        with self._lock:
            if not self.sampling.budget:
                return (f"one iteration in {self.distance} was dumped (sampling).",)
            if not self._plain or not self._dumped_count:
                return (f"too few iterations ran to keep dumps to {self.sampling} of the time (sampling).",)
            added = max(0.0, self._dumped_seconds - self._dumped_count * _median(self._plain))
            return (
                f"one iteration in {self.distance} was dumped at the end, so that dumps take {self.sampling} of the "
                f"time (sampling); with the first iterations they took {100 * added / self._seconds:.3g} %.",
            )

    def _decides(self, number: int) -> bool:
        if not self.sampling.budget:
            return number % self.sampling.every == 0
        if len(self._plain) < _FEWEST or not self._dumped:
            return number in _FIRST
        return number % self.distance == 0

    def _note(self, seconds: float) -> None:
        """The last iteration has taken this time."""
        self._seconds += seconds
        if not self._is_taken:
            self._plain.append(seconds)
        else:
            self._dumped_seconds += seconds
            self._dumped_count += 1
            if self._plain:  # the first one pays for what is done once
                self._dumped.append(seconds)
        if self._dumped and len(self._plain) >= _FEWEST and self.sampling.budget:
            plain = _median(self._plain)
            added = max(0.0, _median(self._dumped) - plain)
            needed = added / (self.sampling.budget * plain) if plain else _LONGEST
            self.distance = 1
            while self.distance < needed and self.distance < _LONGEST:
                self.distance *= 2
