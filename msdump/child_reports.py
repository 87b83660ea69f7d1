"""What processes that a script started have dumped, for the report of the `msdump run` that started the script.

`Inbox` is a folder that the environment names; each dump of a child leaves one small file there, first that it has
begun, then how it ended. The first alone shows a child that was killed.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import tempfile
from dataclasses import asdict, dataclass
from types import TracebackType

VARIABLE = "MSDUMP_REPORTS"
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class ChildReport:
    """One dump of one process.

    is_empty  whether nothing matched what was configured
    error     why the dump is not complete; None when it is
    """

    process_id: int
    path: str
    tensors_written: int = 0
    is_empty: bool = False
    error: str | None = None


class Inbox:
    """Collects the reports of all processes below this one while it is open. Forked processes leave it alone."""

    def __init__(self) -> None:
        self._process_id = os.getpid()
        self._folder = tempfile.mkdtemp(prefix="msdump-")
        os.environ[VARIABLE] = f"{self._process_id}:{self._folder}"

    def __enter__(self) -> Inbox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if os.getpid() == self._process_id:
            os.environ.pop(VARIABLE, None)
            shutil.rmtree(self._folder, ignore_errors=True)

    def read(self) -> list[ChildReport]:
        """Reports up to now, by process; [] in a forked process."""
        reports = []
        if os.getpid() == self._process_id:
            for name in os.listdir(self._folder):
                path = os.path.join(self._folder, name)
                with contextlib.suppress(OSError, ValueError, TypeError), open(path, encoding="utf-8") as file:
                    reports.append(ChildReport(**json.load(file)))
        return sorted(reports, key=lambda report: (report.process_id, report.path))


def is_child() -> bool:
    """Whether an `msdump run` in another process waits for reports of this one."""
    return _inbox_folder() is not None


def _inbox_folder() -> str | None:
    owner, _, folder = os.environ.get(VARIABLE, "").partition(":")
    return folder if owner.isdigit() and int(owner) != os.getpid() else None


class Outbox:
    """Reports one dump of this process. Does nothing in the process of the inbox, or when there is none."""

    def __init__(self, path: str) -> None:
        self._process_id = os.getpid()
        self._path = path
        folder = _inbox_folder()
        self._file = None if folder is None else os.path.join(folder, f"{self._process_id}-{next(_numbers)}")
        self._send(ChildReport(self._process_id, path, error="The process ended without finishing its dump."))

    def finish(self, tensors_written: int, is_empty: bool, error: str | None) -> None:
        """The dump has ended. Nothing in a process that was forked from the one that dumps."""
        if os.getpid() == self._process_id:
            self._send(ChildReport(self._process_id, self._path, tensors_written, is_empty, error))

    def _send(self, report: ChildReport) -> None:
        if self._file is None:
            return
        # The process that reads it may have ended already.
        with contextlib.suppress(OSError):
            with open(self._file + ".new", "w", encoding="utf-8") as file:
                json.dump(asdict(report), file)
            os.replace(self._file + ".new", self._file)
