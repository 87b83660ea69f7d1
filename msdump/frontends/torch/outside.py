"""What of a script's models ran outside of the graphs that were captured: breaks, frames, and operators between graphs.

Dynamo continues silently where it cannot capture code. What runs there is in no dump.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch._dynamo import eval_frame, utils

from msdump._version import FOLDER

if TYPE_CHECKING:
    from torch._dynamo.output_graph import GraphCompileReason
    from torch._dynamo.utils import CompilationMetrics

T = TypeVar("T")

BREAK, SKIPPED = "graph break", "not captured"
_TORCH = os.path.dirname(torch.__file__) + os.sep
_RNN = "RNN, GRU, or LSTM"
_RNN_ADVICE = " `msdump run --torch-rnn`, or torch._dynamo.config.allow_rnn = True, captures it."

_VIEWS = frozenset(
    f"aten::{name}" for name in ("_unsafe_view", "alias", "as_strided", "detach", "detach_", "lift_fresh", "view")
)

# (kind, file, line, function, reason)
GapSite = tuple[str, str, int, str, str]
# file:line of the script, and the function; "" where the stack does not tell it
Spot = str
# (call or graph, "begin", "end" or "graph", how often it ran in the step)
_Stop = tuple[Hashable, str, int]
_FRAME = re.compile(r"(?P<file>.+)\((?P<line>[0-9]+)\): (?P<function>.*)")
_MAX_SPOTS = 20


class Breaks:
    """Graph breaks and frames that Dynamo left out, of this process, by line of the script. Any thread may ask.

    Source: PyTorch, `torch._dynamo.utils.graph_break_reasons` and `get_compilation_metrics`, which keeps the last ones
    only: `collect` is called with every graph that is compiled.
    """

    def __init__(self) -> None:
        self._counts: Counter[GapSite] = Counter()
        self._break_count = 0
        self._frames: set[Hashable] = set()
        self._lock = threading.Lock()

    def collect(self) -> None:
        """Count what is new."""
        with self._lock:
            reasons = list(getattr(utils, "graph_break_reasons", ()))
            self._break_count = min(self._break_count, len(reasons))
            for reason in reasons[self._break_count :]:
                self._counts[_site_of(reason)] += 1
            self._break_count = len(reasons)
            for metrics in getattr(utils, "get_compilation_metrics", list)():
                key = tuple(str(getattr(metrics, name, "")) for name in ("compile_id", "co_name", "start_time"))
                if getattr(metrics, "fail_type", None) in ("Unsupported", "SkipFrame") and key not in self._frames:
                    self._frames.add(key)
                    self._counts[_skipped(metrics)] += 1

    def lines(self) -> tuple[str, ...]:
        """One line for each call site and reason, in the order in which they were met."""
        self.collect()
        with self._lock:
            return tuple(_line(site, count) for site, count in self._counts.items())

    def forget(self) -> None:
        """In a process that was forked: what its parent met, its parent says. Only what comes from now on counts."""
        self._lock = threading.Lock()
        self.collect()
        self._counts.clear()


def _site_of(reason: GraphCompileReason) -> GapSite:
    frames = [frame for frame in reason.user_stack if not frame.filename.startswith(_TORCH)] or reason.user_stack
    text = str(reason.reason)
    if not frames:
        return BREAK, "", 0, "", _first_line(text)
    return BREAK, frames[-1].filename, frames[-1].lineno or 0, frames[-1].name, _first_line(text)


def _skipped(metrics: CompilationMetrics) -> GapSite:
    file = getattr(metrics, "fail_user_frame_filename", None) or metrics.co_filename or ""
    line = getattr(metrics, "fail_user_frame_lineno", None) or metrics.co_firstlineno or 0
    return SKIPPED, file, int(line), metrics.co_name or "", _first_line(metrics.fail_reason or "")


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0].strip()


def _line(site: GapSite, count: int) -> str:
    kind, file, line, function, reason = site
    where = f"{file}:{line} in {function}" if file else "an unknown line"
    advice = _RNN_ADVICE if _RNN in reason else ""
    return f"{kind}: {where}: {reason.rstrip('.')}, {count} {'time' if count == 1 else 'times'}.{advice}"


class Gaps:
    """Operators of a step that no graph holds: inside of a compiled call before, between and after its graphs, and
    between two compiled calls. Each gap is checked once. Any thread may call it; each has gaps of its own.

    The look is a profiler of the C++ library, for one gap at a time: inside of a compiled call until every gap of it is
    known, between calls where one was seen to follow the other. It is off while anything else of the script runs. Where
    PyTorch has no such profiler nothing is counted.
    """

    def __init__(self) -> None:
        self._walk = _Walk()
        self._next: dict[_Stop, _Stop] = {}
        self._counts: dict[tuple[_Stop, _Stop], Counter[Spot]] = {}
        self._looking: tuple[int, int] | None = None
        self._is_void = False
        self._compiled = 0
        self._lock = threading.Lock()

    @property
    def operators(self) -> Counter[Spot]:
        """In all gaps that were looked at, by line of the script."""
        return sum(self._counts.values(), Counter())

    def compile(self) -> None:
        """A graph is compiled: what Dynamo runs for that is no operator of the script's."""
        self._compiled += 1

    def meet(self, call: Hashable) -> None:
        """A compiled call is under way that is not counted: when it begins again, a new step does."""
        self._walk.ran[call] += 1

    def begin(self, call: Hashable) -> None:
        """A compiled call begins."""
        with self._lock:
            self._arrive(call, "begin")
            self._walk.depth += 1
            self._depart()

    def end(self, call: Hashable) -> None:
        """It ends, normally or by an exception."""
        with self._lock:
            self._arrive(call, "end")
            self._walk.depth -= 1
            self._depart()

    def enter(self, graph: Hashable) -> None:
        """A graph begins to run forward."""
        with self._lock:
            self._arrive(graph, "graph")

    def leave(self, graph: Hashable) -> None:
        """It has run."""
        with self._lock:
            self._depart()

    def stop(self) -> None:
        """Nothing more is counted; called when a backward begins, and at the end."""
        with self._lock:
            self._stop()
            self._walk.last = None
            if not self._walk.depth:
                self._walk.ran.clear()

    def forget(self) -> None:
        """In a process that was forked: what its parent met, its parent says. Only what comes from now on counts."""
        self._lock = threading.Lock()
        self._stop()
        self._counts = {gap: Counter() for gap in self._counts}

    def _arrive(self, what: Hashable, kind: str) -> None:
        """The end of a gap. A call, or a graph outside of calls, that comes again begins a new step."""
        walk, count = self._walk, self._stop()
        if not walk.depth and kind != "end" and walk.ran[what]:
            walk.ran.clear()
            walk.last = None
        if kind != "end":
            walk.ran[what] += 1
        # A graph may run several times in one call.
        here = what, kind, walk.ran[what]
        if walk.last is not None:
            if count is not None:
                self._counts[walk.last, here] = count
            self._next[walk.last] = here
        walk.last = here

    def _depart(self) -> None:
        """The beginning of a gap."""
        walk = self._walk
        if walk.last is None or self._looking is not None:
            return
        follower = self._next.get(walk.last)
        is_new = walk.depth > 0 if follower is None else (walk.last, follower) not in self._counts
        if is_new and _enable():
            self._looking = threading.get_ident(), self._compiled

    def _stop(self) -> Counter[Spot] | None:
        """Operators since the look began; None when there was none, or something else was in between."""
        if self._looking is None or self._looking[0] != threading.get_ident():
            return None
        if torch._C._current_autograd_node() is not None:
            # Autograd would turn the profiler on again, as it was when the backward pass began.
            self._is_void = True
            return None
        compiled, is_void = self._looking[1], self._is_void
        self._looking, self._is_void = None, False
        events = _disable()
        return None if is_void or compiled != self._compiled or events is None else operators_in(events)


class _Walk(threading.local):
    """Where a thread is in its step.

    last    the last end of a gap
    ran     how often each call and graph ran in the step
    depth   of compiled calls in one another
    """

    def __init__(self) -> None:
        self.last: _Stop | None = None
        self.ran: Counter[Hashable] = Counter()
        self.depth = 0


def _enable() -> bool:
    try:
        from torch._C._profiler import ProfilerConfig, ProfilerState, _ExperimentalConfig

        # Of each operator the stack, and nothing else.
        flags = (False, False, True, False, False)
        torch._C._autograd._enable_profiler_legacy(ProfilerConfig(ProfilerState.CPU, *flags, _ExperimentalConfig()))
    except (ImportError, AttributeError, TypeError, RuntimeError):
        return False  # another profiler is on, or this PyTorch has none of this kind
    return True


def _disable() -> Any:
    try:
        return torch._C._autograd._disable_profiler_legacy()
    except (AttributeError, RuntimeError):
        return None


def operators_in(events: Iterable[Iterable[Any]]) -> Counter[Spot]:
    """Operators that no other operator called, but for views, by the line of the script that called them."""
    count: Counter[Spot] = Counter()
    for thread in events:
        # Of each call that has not ended: whether it is an operator.
        calls: list[bool] = []
        for event in thread:
            if event.kind() == "push":
                is_operator = "::" in event.name()
                if is_operator and not any(calls) and event.name() not in _VIEWS:
                    count[_spot(event.stack())] += 1
                calls.append(is_operator)
            elif event.kind() == "pop" and calls:
                calls.pop()
    return count


def _spot(stack: Iterable[str]) -> Spot:
    """The innermost frame that is neither PyTorch's nor msdump's."""
    for text in stack:
        frame = _FRAME.fullmatch(text)
        if frame is not None and not frame["file"].startswith((_TORCH, FOLDER, "<")):
            return f"{frame['file']}:{frame['line']} in {frame['function']}"
    return ""


breaks = Breaks()
gaps = Gaps()


def _forget() -> None:
    breaks.forget()
    gaps.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def note_compilation() -> None:
    """A graph is compiled for a dump."""
    breaks.collect()
    gaps.compile()


def lines() -> tuple[str, ...]:
    """What a report says of all this; () when nothing ran outside."""
    gaps.stop()
    operators = gaps.operators
    texts = breaks.lines()
    if operators:
        texts += (f"{operators.total()} operators of a step ran outside of its graphs, in no dump.",)
        spots = [(spot or "an unknown line", count) for spot, count in operators.items()]
        texts += tuple(f"not in a graph: {spot}: {_counted(count)}" for spot, count in spots[:_MAX_SPOTS])
        if len(spots) > _MAX_SPOTS:
            rest = sum(count for _, count in spots[_MAX_SPOTS:])
            texts += (f"not in a graph: {len(spots) - _MAX_SPOTS} more lines: {_counted(rest)}",)
    return texts


def _counted(count: int) -> str:
    return f"{count} operator{'' if count == 1 else 's'}"


def counted_backward(run: Callable[[list[object]], T]) -> Callable[[list[object]], T]:
    """A graph that runs backward, where the forward run of a step has ended."""

    def counting(args: list[object]) -> T:
        gaps.stop()
        return run(args)

    return counting


def counted(compiled: Callable[..., T]) -> Callable[..., T]:
    """What Dynamo calls for a graph, as one that gaps are counted around, and the call that compiles it now as well.

    What AOT Autograd does around its forward graph, such as to write back inputs, counts as part of it.
    """
    _watch_calls()
    graph = object()

    @functools.wraps(compiled)
    def counting(*args: object) -> T:
        gaps.enter(graph)
        try:
            return compiled(*args)
        finally:
            gaps.leave(graph)

    return counting


def _watch_calls() -> None:
    """Tell `gaps` when the compiled calls that are under way begin and end, from the next time on.

    Source: PyTorch, `enter_exit_hooks` of the context that each function has that `torch.compile` made.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == eval_frame.__file__:
            hooks = getattr(frame.f_locals.get("self"), "enter_exit_hooks", None)
            if isinstance(hooks, list) and not any(isinstance(hook, _CallHook) for hook in hooks):
                hook = _CallHook()
                hooks.append(hook)
                gaps.meet(hook)
        frame = frame.f_back


class _CallHook:
    """Called when a compiled call begins; the result is called when it ends."""

    def __call__(self) -> Callable[[], None]:
        gaps.begin(self)
        return functools.partial(gaps.end, self)
