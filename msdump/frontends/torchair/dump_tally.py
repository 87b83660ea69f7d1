"""What the dumps that a script's CompilerConfig asks for have done in this process."""

from __future__ import annotations

import os
import threading

from msdump import sessions
from msdump.errors import DumpError
from msdump.measuring import Counts
from msdump.report import CAPTURED, EAGER, Kind, Report


class DumpTally:
    """Counts of one kind of dump in this process. Any thread may count.

    kind           its words, for reports
    steps          runs of graphs, of a kind that counts them
    seconds        that the models waited for files
    lost           values of the run of a graph with which a dump failed; later runs are not dumped, and not counted
    """

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self._lock = threading.Lock()
        self._reset()

    def _reset(self) -> None:
        self.seconds = 0.0
        self.files = self.lost = self.bytes_written = self.steps = self.skipped = 0
        self.folders: set[str] = set()
        self.error = ""
        self._session: TallySession | None = None

    def begin(self, folder: str) -> None:
        """A graph is compiled, or runs, with a dump to a folder."""
        with self._lock:
            if self._session is None:
                self._session = sessions.begin(TallySession(self, folder))

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

    def report(self, folder: str) -> Report:
        """Counts up to now; `folder` stands there while there are no files."""
        skipped = {"without a file": self.skipped} if self.skipped else {}
        return Report(
            ", ".join(sorted(self.folders)) or folder,
            self.kind,
            iterations_run=self.steps,
            iterations_dumped=self.steps,
            tensors_written=self.files,
            files=self.files,
            bytes_named=self.bytes_written,
            bytes_written=self.bytes_written,
            skipped=skipped,
            lost=self.lost,
            error=self.error or None,
            dump_seconds=self.seconds,
        )

    def counts(self) -> Counts:
        """What was written up to now."""
        return Counts(self.files, 0, self.bytes_written, self.seconds)

    def flush(self) -> None:
        """Nothing waits: each file is written when its operator runs."""

    def forget(self) -> None:
        """In a process that was forked: what its parent did is not its own."""
        self._lock = threading.Lock()
        self._reset()


class TallySession(sessions.Session):
    """What one tally counts, from the first graph on."""

    def __init__(self, tally: DumpTally, folder: str) -> None:
        super().__init__()
        self._tally = tally
        self._folder = folder

    @property
    def folder(self) -> str:
        return self._folder

    def report(self) -> Report:
        return self._tally.report(self._folder)

    def _finish(self) -> None:
        tally = self._tally
        if tally.error:
            raise DumpError(f"{self._folder}: the dump is not complete, {tally.lost} values are missing. {tally.error}")


# One for each kind: backends of a process may share folders.
eager = DumpTally(EAGER)
captured = DumpTally(CAPTURED)
for _tally in (eager, captured):
    sessions.call_at_reset(_tally.forget)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_tally.forget)
