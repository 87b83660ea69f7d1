"""What of a script's models ran outside of the graphs that were captured: breaks, frames, and operators between graphs.

Dynamo goes on without a word where it cannot capture something. Whatever runs there is in no dump.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import torch
from torch._dynamo import utils

BREAK, SKIPPED = "graph break", "not captured"
_TORCH = os.path.dirname(torch.__file__) + os.sep
_RNN = "RNN, GRU, or LSTM"
_RNN_ADVICE = " `msdump run --torch-rnn`, or torch._dynamo.config.allow_rnn = True, captures it."

_VIEWS = frozenset(
    f"aten::{name}" for name in ("_unsafe_view", "alias", "as_strided", "detach", "detach_", "lift_fresh", "view")
)

# (kind, file, line, function, reason)
Place = tuple[str, str, int, str, str]


class Breaks:
    """Graph breaks and frames that Dynamo left out, of this process, by line of the script. Any thread may ask.

    Source: PyTorch, `torch._dynamo.utils.graph_break_reasons` and `get_compilation_metrics`, which keeps the last ones
    only: `collect` is called with every graph that is compiled.
    """

    def __init__(self) -> None:
        self._counts: Counter[Place] = Counter()
        self._break_count = 0
        self._frames: set[Hashable] = set()
        self._lock = threading.Lock()

    def collect(self) -> None:
        """Count what is new."""
        with self._lock:
            reasons = list(getattr(utils, "graph_break_reasons", ()))
            self._break_count = min(self._break_count, len(reasons))
            for reason in reasons[self._break_count :]:
                self._counts[_place_of(reason)] += 1
            self._break_count = len(reasons)
            for metrics in getattr(utils, "get_compilation_metrics", list)():
                key = tuple(str(getattr(metrics, name, "")) for name in ("compile_id", "co_name", "start_time"))
                if getattr(metrics, "fail_type", None) in ("Unsupported", "SkipFrame") and key not in self._frames:
                    self._frames.add(key)
                    self._counts[_skipped(metrics)] += 1

    def lines(self) -> tuple[str, ...]:
        """One line for each place and reason, in the order in which they were met."""
        self.collect()
        with self._lock:
            return tuple(_line(place, count) for place, count in self._counts.items())


def _place_of(reason: Any) -> Place:
    frames = [frame for frame in reason.user_stack if not frame.filename.startswith(_TORCH)] or reason.user_stack
    text = str(reason.reason)
    if not frames:
        return BREAK, "", 0, "", _first_line(text)
    return BREAK, frames[-1].filename, frames[-1].lineno or 0, frames[-1].name, _first_line(text)


def _skipped(metrics: Any) -> Place:
    file = getattr(metrics, "fail_user_frame_filename", None) or metrics.co_filename or ""
    line = getattr(metrics, "fail_user_frame_lineno", None) or metrics.co_firstlineno or 0
    return SKIPPED, file, int(line), metrics.co_name or "", _first_line(metrics.fail_reason or "")


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0].strip()


def _line(place: Place, count: int) -> str:
    kind, file, line, function, reason = place
    where = f"{file}:{line} in {function}" if file else "an unknown line"
    advice = _RNN_ADVICE if _RNN in reason else ""
    return f"{kind}: {where}: {reason.rstrip('.')}, {count} {'time' if count == 1 else 'times'}.{advice}"


class Gaps:
    """Operators that run between two graphs of one step, which neither holds. Each gap is looked at once.

    The look is a profiler of the C++ library, for one gap at a time and only where one graph was seen to follow the
    other: it is off while anything else of the script runs. Where PyTorch has no such profiler nothing is counted.
    """

    def __init__(self) -> None:
        self._next: dict[Hashable, Hashable] = {}
        self._ran: set[Hashable] = set()
        self._last: Hashable | None = None
        self._counts: dict[tuple[Hashable, Hashable], int] = {}
        self._looking: tuple[int, int] | None = None
        self._compiled = 0
        self._lock = threading.Lock()

    @property
    def operators(self) -> int:
        """In all gaps that were looked at."""
        return sum(self._counts.values())

    def compile(self) -> None:
        """A graph is compiled: what Dynamo runs for that is no operator of the script's."""
        self._compiled += 1

    def enter(self, graph: Hashable) -> None:
        """A graph begins to run forward."""
        with self._lock:
            count = self._stop()
            if graph in self._ran:
                self._ran.clear()
                self._last = None
            if self._last is not None:
                if count is not None and self._next.get(self._last) == graph:
                    self._counts[self._last, graph] = count
                self._next[self._last] = graph
            self._ran.add(graph)
            self._last = None

    def leave(self, graph: Hashable) -> None:
        """It has run."""
        with self._lock:
            self._last = graph
            follower = self._next.get(graph)
            if follower is not None and (graph, follower) not in self._counts and self._looking is None:
                self._looking = (threading.get_ident(), self._compiled) if _enable() else None

    def stop(self) -> None:
        """Nothing more is counted; called when a backward begins, and at the end."""
        with self._lock:
            self._stop()
            self._last = None

    def _stop(self) -> int | None:
        """Operators since the look began; None when there was none, or something else was in between."""
        if self._looking is None or self._looking[0] != threading.get_ident():
            return None
        compiled = self._looking[1]
        self._looking = None
        events = _disable()
        return None if compiled != self._compiled or events is None else _operators_in(events)


def _enable() -> bool:
    try:
        from torch._C._profiler import ProfilerConfig, ProfilerState, _ExperimentalConfig

        flags = (False, False, False, False, False)
        torch._C._autograd._enable_profiler_legacy(ProfilerConfig(ProfilerState.CPU, *flags, _ExperimentalConfig()))
    except (ImportError, AttributeError, TypeError, RuntimeError):
        return False  # another profiler is on, or this PyTorch has none of this kind
    return True


def _disable() -> Any:
    try:
        return torch._C._autograd._disable_profiler_legacy()
    except (AttributeError, RuntimeError):
        return None


def _operators_in(events: Iterable[Iterable[Any]]) -> int:
    """Operators that no other operator called, but for views, which AOT Autograd makes of the results of a graph."""
    count = 0
    for thread in events:
        # Of each call that has not ended: whether it is an operator.
        calls: list[bool] = []
        for event in thread:
            if event.kind() == "push":
                is_operator = "::" in event.name()
                count += is_operator and not any(calls) and event.name() not in _VIEWS
                calls.append(is_operator)
            elif event.kind() == "pop" and calls:
                calls.pop()
    return count


breaks = Breaks()
gaps = Gaps()


def note_compilation() -> None:
    """A graph is compiled for a dump."""
    breaks.collect()
    gaps.compile()


def lines() -> tuple[str, ...]:
    """What a report says of all this; () when nothing ran outside."""
    gaps.stop()
    found = breaks.lines()
    if gaps.operators:
        found += (f"{gaps.operators} operators of a step ran between its graphs, in no dump.",)
    return found


def counted_backward(run: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """A graph that runs backward, where the forward run of a step has ended."""

    def counting(args: list[Any]) -> Any:
        gaps.stop()
        return run(args)

    return counting


def counted(run: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """A graph that runs forward, as one that gaps are counted around."""
    key = object()

    def counting(args: list[Any]) -> Any:
        gaps.enter(key)
        try:
            return run(args)
        finally:
            gaps.leave(key)

    return counting
