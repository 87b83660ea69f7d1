"""SIGTERM as an exception: a script unwinds as with `sys.exit`, so that open dumps are finished.

Python runs the handler between any two steps of the main thread, also within `__del__`, a weakref's callback or another
place whose exceptions it only reports. One that ends there is sent again as soon as the thread has left that place.
"""

from __future__ import annotations

import os
import sys
import threading
import types
from collections.abc import Callable
from typing import Any, NoReturn

_SECONDS_BETWEEN_LOOKS = 0.001
_waiting = threading.Lock()  # held by the thread that is to send the signal again


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
    raise ScriptEnded(number)


class _Previous:
    """What Python called before for exceptions that nobody can catch."""

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
