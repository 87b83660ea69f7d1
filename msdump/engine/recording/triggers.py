"""Triggers of a recorder: exceptions that no code caught, signals, time, and spikes of a number such as a loss."""

from __future__ import annotations

import math
import signal
import sys
import threading
import types
from collections import deque
from collections.abc import Callable
from typing import Any

from msdump.process import termination

Tell = Callable[[str, str], None]


class Hooks:
    """Listens from `begin` to `end`; in a process that was forked it tells nobody anything.

    on     names among TRIGGERS
    tell   called with the name of a trigger and what happened: by signals later, when it is safe; by exceptions at once
    note   as `tell`, called inside of a signal handler: it may only remember
    watch  called about once a second by a thread of its own
    """

    def __init__(self, on: tuple[str, ...], tell: Tell, note: Tell, watch: Callable[[], None]) -> None:
        self._on = on
        self._tell = tell
        self._note = note
        self._watch = watch
        self._is_on = False
        self._end = threading.Event()
        self._thread: threading.Thread | None = None
        self._previous: Any = None
        self._excepthook: Any = None
        self._thread_hook: Any = None

    def begin(self) -> None:
        self._is_on = True
        if "exception" in self._on:
            self._excepthook, sys.excepthook = sys.excepthook, self._on_exception
            self._thread_hook, threading.excepthook = threading.excepthook, self._on_thread_exception
        if "signal" in self._on:
            termination.end_by_exception_on_sigterm()
            termination.call_when_signal_ends_script(self._on_end)
            if threading.current_thread() is threading.main_thread():
                self._previous = signal.signal(signal.SIGUSR1, self._on_signal)
        if "hang" in self._on:
            self._thread = threading.Thread(target=self._run, name="msdump-recorder", daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Idempotent."""
        if not self._is_on:
            return
        self._is_on = False
        self._end.set()
        # What somebody else has put in place since stays; it may call ours, which does nothing any longer.
        if sys.excepthook == self._on_exception:
            sys.excepthook = self._excepthook
        if threading.excepthook == self._on_thread_exception:
            threading.excepthook = self._thread_hook
        termination.forget_signal(self._on_end)
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and self._previous is not None and signal.getsignal(signal.SIGUSR1) == self._on_signal:
            signal.signal(signal.SIGUSR1, self._previous)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def leave_to_parent(self) -> None:
        """In a process that was forked: threads are not in it, and what it does concerns nobody."""
        self._is_on = False
        self._thread = None

    def _run(self) -> None:
        while not self._end.wait(1.0):
            self._watch()

    def _on_exception(self, kind: type[BaseException], error: BaseException, trace: Any) -> None:
        if self._is_on and issubclass(kind, Exception):
            self._tell("exception", _line(error))
        self._excepthook(kind, error, trace)

    def _on_thread_exception(self, arguments: threading.ExceptHookArgs) -> None:
        if self._is_on and arguments.exc_value is not None and issubclass(arguments.exc_type, Exception):
            name = arguments.thread.name if arguments.thread is not None else "a thread"
            self._tell("exception", f"in {name}: {_line(arguments.exc_value)}")
        self._thread_hook(arguments)

    def _on_signal(self, number: int, frame: types.FrameType | None) -> None:
        if self._is_on:
            self._note("command", signal.Signals(number).name)
        if callable(self._previous):
            self._previous(number, frame)

    def _on_end(self, number: int) -> None:
        if self._is_on:
            self._note("signal", signal.Signals(number).name)


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".split("\n", 1)[0]


# -- spikes: numbers that leave the last ones far behind ---------------------------------------------------------------

_FEWEST, _MOST = 16, 200
# Of a normal distribution: what turns a median deviation into a standard deviation.
_SIGMA = 1.4826
# Numbers that hardly move have no spread to speak of: this part of their size is no spike.
_SMALLEST_PART = 1e-3


class SpikeRule:
    """One series of numbers.   limit: standard deviations, estimated from the median deviation, that make a spike."""

    def __init__(self, name: str, limit: float) -> None:
        self._name = name
        self._limit = limit
        self._last: deque[float] = deque(maxlen=_MOST)

    def add(self, value: float) -> tuple[str, str]:
        """Take the next number.   Returns: name of the trigger and what happened; ("", "") where nothing did."""
        if not math.isfinite(value):
            return "nonfinite", f"{self._name} is {value}"
        score, centre = self._score(value)
        # A spike is no measure for what comes later.
        if score > self._limit:
            return "spike", f"{self._name} is {value:.6g}, {score:.3g} standard deviations above {centre:.6g}"
        self._last.append(value)
        return "", ""

    def _score(self, value: float) -> tuple[float, float]:
        if len(self._last) < _FEWEST:
            return 0.0, 0.0
        centre = _median(list(self._last))
        spread = _SIGMA * _median([abs(each - centre) for each in self._last])
        return (value - centre) / max(spread, _SMALLEST_PART * abs(centre), 1e-300), centre


def _median(values: list[float]) -> float:
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
