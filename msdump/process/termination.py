"""The end of a process: what is called then, and SIGTERM as an exception, so that open dumps are finished.

A script unwinds as with `sys.exit`.
Python runs the handler between any two steps of the main thread, also within `__del__`, a weakref's callback or another
place whose exceptions it only reports. One that ends there is sent again as soon as the thread has left that place.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import types
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, NoReturn, TypeVar

Result = TypeVar("Result")

_SECONDS_BETWEEN_LOOKS = 0.001
_waiting = threading.Lock()  # held by the thread that is to send the signal again


_sigterm_process = 0  # that took the signal, as its children have not


def call_when_process_ends(function: Callable[[], None]) -> None:
    """Call it once when this process ends: normally, by an exception, or as a worker of multiprocessing."""
    atexit.unregister(function)  # a forked process may have it from its parent
    atexit.register(function)
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.parent_process() is not None:
        # Such a process ends without what atexit knows.
        from multiprocessing.util import Finalize

        Finalize(None, function, exitpriority=0)


def end_by_exception_on_sigterm() -> None:
    """Let SIGTERM end the script as an exception would, so that what waits is written.

    Only where no other handler is installed, and only in the main thread.
    """
    global _sigterm_process
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        _sigterm_process = os.getpid()
        signal.signal(signal.SIGTERM, _on_sigterm)


def forget(function: Callable[[], None]) -> None:
    """Undo both for tests."""
    atexit.unregister(function)
    if signal.getsignal(signal.SIGTERM) is _on_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _on_sigterm(number: int, frame: types.FrameType | None) -> None:
    if os.getpid() != _sigterm_process:
        # A child that was forked has neither the writers' threads nor anything to write.
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    elif not getattr(sys.modules.get("multiprocessing.util"), "_exiting", False):
        end_script(number)
    # Else a worker of multiprocessing is at its end: an exception there would keep its dump from being finished.


_on_end: list[Callable[[int], None]] = []


def call_when_signal_ends_script(function: Callable[[int], None]) -> None:
    """Call it, with the number of the signal, inside of the handler that ends the script: it may only remember that."""
    _on_end.append(function)


def forget_signal(function: Callable[[int], None]) -> None:
    """Undo `call_when_signal_ends_script`."""
    if function in _on_end:
        _on_end.remove(function)


class ScriptEnded(SystemExit):
    """A signal ended the script; the exit status is 128 + its number, as a shell has it."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.number = number


def end_script(number: int) -> NoReturn:
    """Called by a signal's handler: raise, and see to it that the exception is not lost."""
    if sys.unraisablehook is not _hook:
        _Previous.hook = sys.unraisablehook
        sys.unraisablehook = _hook
    for function in _on_end:
        function(number)
    raise ScriptEnded(number)


class _Previous:
    """The previous `sys.unraisablehook`, for exceptions that cannot be caught."""

    hook: Callable[[Any], object] = sys.__unraisablehook__


def _hook(unraisable: sys.UnraisableHookArgs) -> None:
    error = unraisable.exc_value
    if isinstance(error, ScriptEnded):
        # One signal is enough: a second would come while the script unwinds from the first.
        if _waiting.acquire(blocking=False):
            threading.Thread(target=_send_again, args=(error.number,), name="msdump-signal", daemon=True).start()
    else:
        _Previous.hook(unraisable)


def _send_again(number: int) -> None:
    main = threading.main_thread().ident
    pause = threading.Event()
    while main is not None and _is_in_hook(sys._current_frames().get(main)):
        pause.wait(_SECONDS_BETWEEN_LOOKS)
    _waiting.release()
    os.kill(os.getpid(), number)


def _is_in_hook(frame: types.FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code is _hook.__code__:
            return True
        frame = frame.f_back
    return False


def in_thread(pool: Executor, work: Callable[..., Result], *arguments: Any) -> Future[Result]:
    """As `pool.submit`. When Python ends, which begins no thread any longer, the work is done here and now."""
    try:
        return pool.submit(work, *arguments)
    except RuntimeError:
        future: Future[Result] = Future()
        try:
            future.set_result(work(*arguments))
        except Exception as error:  # noqa: BLE001  (raised by `Future.result`)
            future.set_exception(error)
        return future
