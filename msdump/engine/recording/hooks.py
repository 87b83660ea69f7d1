"""Triggers of the process: uncaught exceptions of any thread, signals and time-outs."""

from __future__ import annotations

import signal
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

from msdump.process import termination

Tell = Callable[[str, str], None]


class Hooks:
    """Listens from `begin` to `end`; disabled in forked children.

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
        # Hooks that other code has installed since stay; they may call ours, which does nothing any more.
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
        """Disable the hooks in a forked child, which has none of the parent's threads."""
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
