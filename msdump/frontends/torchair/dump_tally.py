"""What the dumps that a script's CompilerConfig asks for have done in this process, and what a parent hears of them."""

from __future__ import annotations

import os
import threading

from msdump.child_reports import Outbox, is_child
from msdump.measuring import Counts
from msdump.session import call_when_process_ends, end_by_exception_on_sigterm


class DumpTally:
    """Counts of one kind of dump in this process. Any thread may count.

    name           of the kind, for reports
    steps          runs of graphs, of a kind that counts them
    seconds        that the models waited for files
    lost           values of the run of a graph with which a dump failed; later runs are not dumped, and not counted
    is_configured  whether a graph was compiled with such a dump
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = threading.Lock()
        self._reset()

    def _reset(self) -> None:
        self.seconds = 0.0
        self.files = self.lost = self.bytes_written = self.steps = self.skipped = 0
        self.folders: set[str] = set()
        self.error = ""
        self.is_configured = False
        self._outbox: Outbox | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was to be written."""
        return not (self.files or self.lost or self.error)

    def begin(self, folder: str) -> None:
        """A graph is compiled, or runs, with a dump to a folder."""
        with self._lock:
            self.is_configured = True
            if self._outbox is not None:
                return
            self._outbox = Outbox(folder)
        call_when_process_ends(self.finish)
        if is_child():
            end_by_exception_on_sigterm()

    def add(
        self,
        folder: str,
        files: int,
        bytes_written: int,
        *,
        steps: int = 0,
        skipped: int = 0,
        lost: int = 0,
        seconds: float = 0.0,
    ) -> None:
        """Files were written, or lost."""
        self.begin(folder)
        with self._lock:
            self.lost += lost
            self.files += files
            self.bytes_written += bytes_written
            self.skipped += skipped
            self.steps += steps
            self.seconds += seconds
            if files:
                self.folders.add(folder)

    def fail(self, error: Exception) -> None:
        """Remember the first error."""
        with self._lock:
            self.error = self.error or str(error)

    def finish(self) -> None:
        """The process ends: tell the one that waits for its report."""
        with self._lock:
            if self._outbox is not None:
                error = self.error or (f"{self.lost} values were not written." if self.lost else None)
                self._outbox.finish(self.files, self.is_empty, error)

    def counts(self) -> Counts:
        """What was written up to now."""
        return Counts(self.files, 0, self.bytes_written, self.seconds)

    def flush(self) -> None:
        """Nothing waits: each file is written when its operator runs."""

    def forget(self) -> None:
        """In a process that was forked: what its parent did is not its own."""
        self._lock = threading.Lock()
        self._reset()


# One for each kind: backends of a process may share folders.
eager = DumpTally("eager data dump")
captured = DumpTally("dump of captured graphs")
TALLIES = (eager, captured)
if hasattr(os, "register_at_fork"):
    for _tally in TALLIES:
        os.register_at_fork(after_in_child=_tally.forget)
