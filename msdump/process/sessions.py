"""The list of this process's dumps, and how each ends: by `close`, at exit, by a signal or in a fork."""

from __future__ import annotations

import logging
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from msdump.errors import DumpError
from msdump.process import termination
from msdump.process.report import Outbox, Report, is_child

log = logging.getLogger("msdump")

# Held while a session is opened, while a graph is compiled and made known to observers, and while a run is observed:
# observers take one run at a time, from whichever thread.
lock = threading.RLock()


class PoolProgress(Protocol):
    """How far threads have come, in bytes."""

    @property
    def queued_bytes(self) -> int: ...
    @property
    def written_bytes(self) -> int: ...


class Pool(Protocol):
    """Threads that write while the script continues."""

    def drain(self, timeout: float | None = None) -> bool:
        """Wait until everything is written; False when the time, in seconds, was over first."""
        ...

    def give_up(self) -> None:
        """Write nothing more; what waits is lost."""

    def state(self) -> PoolProgress: ...


class ProcessOwned(ABC):
    """A dump, or a part of one, that belongs to the process that made it and ends once."""

    def __init__(self) -> None:
        self._process_id = os.getpid()
        self._is_closed = False
        self._closing = threading.Lock()

    @abstractmethod
    def _finish(self) -> None:
        """Write what waits. Called once, in the process that began.   Raises: DumpError when something is lost."""

    @property
    def is_foreign(self) -> bool:
        """Whether it belongs to the process that this one was forked from: nothing is dumped here."""
        return self._process_id != os.getpid()

    def may_dump(self) -> bool:
        """Not `is_foreign`; what runs in a forked process is told once that nothing is dumped."""
        if self.is_foreign:
            warn_of_fork(self.fork_advice)
        return not self.is_foreign

    # How to have the tensors of a forked process.
    fork_advice = ""

    @property
    def has_ended(self) -> bool:
        """Whether it was closed."""
        return self._is_closed

    def close(self) -> None:
        """Finish what is pending; what runs later is not dumped. Idempotent, and nothing in a forked process.

        Raises: DumpError when the dump is not complete; the message counts what was lost.
        """
        if self.is_foreign:
            return
        with self._closing:
            if self._is_closed:
                return
            self._is_closed = True
        self._end()

    def _end(self) -> None:
        self._finish()


S = TypeVar("S", bound="Session")
T = TypeVar("T")


class Session(ProcessOwned):
    """One dump of this process, of one configuration. It is on the list from `begin` on, also after its end."""

    # Whether threads write while the script continues, which a signal must not cut off.
    has_threads = False

    def __init__(self) -> None:
        super().__init__()
        self._outbox: Outbox | None = None
        self._shared: dict[Callable[..., Any], Any] = {}

    def shared(self: S, make: Callable[[S], T]) -> T:
        """What `make` makes of this session: made once, and the same for all who ask."""
        with lock:
            if make not in self._shared:
                self._shared[make] = make(self)
            value: T = self._shared[make]
            return value

    @property
    @abstractmethod
    def folder(self) -> str:
        """The folder of the dump, for reports."""

    @abstractmethod
    def report(self) -> Report:
        """Counts up to now."""

    @property
    def is_used(self) -> bool:
        """Whether something ran that the configuration may choose from."""
        return True

    @property
    def pools(self) -> Sequence[Pool]:
        """Threads that may still write; () when nothing waits."""
        return ()

    def note_use(self) -> None:
        """Something runs under it: from now on its end is told to a parent that waits for reports."""
        with self._closing:
            if self._outbox is None and not self.is_foreign:
                self._outbox = Outbox(self.folder)

    def settle(self) -> None:
        """Wait for what the script began and that is still to be dumped. Called before all sessions are closed."""

    def leave_to_parent(self) -> None:
        """In a process that was forked: dump nothing and finish nothing, as threads and files are the parent's."""

    def let_go(self) -> None:
        """Let other processes dump into the folder."""

    def flush(self) -> None:
        """Wait until everything that was dumped so far is on disk."""
        for pool in self.pools:
            pool.drain()

    def _end(self) -> None:
        try:
            self._finish()
        finally:
            # Also when a signal ends the wait: what was lost is counted then.
            self.let_go()
            if self._outbox is not None:
                self._outbox.finish(self.report())


_sessions: list[Session] = []
_is_closing_at_exit = False
# The script says by itself what is dumped, so that no configuration of the environment is missing.
_has_own_configuration = False
# Called once, when a graph is compiled that no dump is configured for.
on_no_dump: Callable[[], None] | None = None


def begin(session: S) -> S:
    """Put a session on the list: from now on whatever ends the process finishes it."""
    global _is_closing_at_exit
    if session.has_threads or is_child():
        termination.end_by_exception_on_sigterm()
    if session.is_used:
        session.note_use()
    with lock:
        _sessions.append(session)
        if not _is_closing_at_exit:
            _is_closing_at_exit = True
            # A script need not close its session; a second call of `close` does nothing.
            termination.call_when_process_ends(_close_at_exit)
    return session


def all_of(kind: type[S]) -> list[S]:
    """The sessions of a class, oldest first, those that ended and, in a forked process, its parent's included."""
    return [session for session in list(_sessions) if isinstance(session, kind)]


def used() -> list[Session]:
    """The sessions of this process that something ran under, oldest first, those that ended included."""
    return [session for session in _own() if session.is_used]


def _own() -> list[Session]:
    return [session for session in list(_sessions) if not session.is_foreign]


def reports() -> list[Report]:
    """What the sessions of this process have done so far, oldest first."""
    return [session.report() for session in used()]


def flush_all() -> None:
    """Wait until everything that was dumped so far is on disk."""
    for session in _own():
        session.flush()


def settle_all() -> None:
    """Wait for what the script began and did not wait for."""
    for session in _own():
        session.settle()


class Closable(Protocol):
    """Something with an end."""

    def close(self) -> None: ...


def close_all(dumps: Iterable[Closable] | None = None) -> None:
    """Close every one, also after one that fails. None: all sessions of this process.

    Raises: DumpError of the first that is not complete.
    """
    if dumps is None:
        settle_all()
        dumps = list(_sessions)
    errors = []
    for dump in dumps:
        try:
            dump.close()
        except DumpError as error:
            errors.append(error)
    if errors:
        raise errors[0]


def _close_at_exit() -> None:
    """The script ended without closing its sessions: close them, and log each dump that is incomplete."""
    for session in list(_sessions):
        try:
            session.close()
        except DumpError as error:
            log.error("%s", error)


# -- what no dump sees -----------------------------------------------------------------------------

_remarks: list[Callable[[], tuple[str, ...]]] = []


def add_remarks(function: Callable[[], tuple[str, ...]]) -> None:
    """Report code of the script that ran outside of the dump, a line for each call site."""
    _remarks.append(function)


def remarks() -> tuple[str, ...]:
    """Code of the script that ran outside of the dump, a line for each call site."""
    return tuple(line for function in _remarks for line in function())


# -- scripts without a dump ------------------------------------------------------------------------


def note_no_dump() -> None:
    """A graph is compiled that no dump is configured for."""
    global on_no_dump
    callback, on_no_dump = on_no_dump, None
    if callback is not None:
        callback()


def note_own_configuration() -> None:
    """The script configures by itself what is dumped or saved, if anything is."""
    global _has_own_configuration
    _has_own_configuration = True


def is_anything_configured() -> bool:
    """Whether a dump began in this process, or the script has its own configuration."""
    return bool(_sessions) or _has_own_configuration


# -- files of front ends that are no dump -----------------------------------------------------------

_left: dict[tuple[str, str], None] = {}


def note_left(what: str, folder: str | os.PathLike[str]) -> None:
    """A front end has left files that are no dump and have no report.   what: in words: TorchAir's graph dump"""
    _left[what, os.path.abspath(folder)] = None


def left() -> tuple[tuple[str, str], ...]:
    """What front ends have left beside dumps, and in which folders, in the order in which they began."""
    return tuple(_left)


# -- forks -----------------------------------------------------------------------------------------

_has_warned = False


def _leave_all_to_parent() -> None:
    """Threads do not survive a fork, and two processes that fill the same folders would spoil them."""
    global _is_closing_at_exit, _has_warned
    for session in _sessions:
        session.leave_to_parent()
    _is_closing_at_exit = _has_warned = False


def warn_of_fork(advice: str = "") -> None:
    """Something runs in a process that was forked from one that dumps. Said once.   advice: how to have its tensors"""
    global _has_warned
    if not _has_warned:
        _has_warned = True
        log.warning(
            "Process %d was forked from one that dumps, and dumps nothing itself%s.",
            os.getpid(),
            f": {advice}, to have its tensors" if advice else "",
        )


if hasattr(os, "register_at_fork"):
    # No run is in progress at the moment of a fork: the child finds graphs and the lock as no thread left them.
    os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    os.register_at_fork(after_in_child=_leave_all_to_parent)


# -- tests -----------------------------------------------------------------------------------------

_at_reset: list[Callable[[], None]] = []


def call_at_reset(function: Callable[[], None]) -> None:
    """Call it at each `reset_for_tests`, to clear what a module keeps of sessions."""
    _at_reset.append(function)


def reset_for_tests() -> None:
    """Drop the sessions, so that the process can be configured again."""
    global _is_closing_at_exit, _has_own_configuration, _has_warned
    for session in _sessions:
        session.let_go()
    _sessions.clear()
    _left.clear()
    termination.forget(_close_at_exit)
    _is_closing_at_exit = _has_own_configuration = _has_warned = False
    for function in _at_reset:
        function()
