"""Report: what one dump has left on disk and what it lost; and how processes hand theirs to `msdump run`.

`Inbox` is a folder that the environment names; each dump of a process that the script started leaves one small file
there, first that it has begun, then how it ended. The first alone shows a process that was killed.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from types import TracebackType


@dataclass(frozen=True, slots=True)
class Kind:
    """The words for one kind of dump.

    title      above a table of counts; "": the name stands there with the counts
    goes_on    what a dump that fails does not stop
    nothing    why there may be nothing on disk
    item       what is counted
    """

    name: str
    goes_on: str
    nothing: str
    title: str = ""
    item: str = "tensor"


log = logging.getLogger("msdump.skipped")


class Skipped(Counter[str]):
    """Why tensors have no file -> how many. What is said of each goes to the log, at level INFO."""

    def add(self, reason: str, name: str) -> None:
        """A tensor, or the tensors of an operator, of that name."""
        self[reason] += 1
        log.info("skipped: %s: %s", name, reason)


def log_not_chosen(names: Iterable[str]) -> None:
    """Say at level INFO which operators the configuration leaves out."""
    if log.isEnabledFor(logging.INFO):
        for name in names:
            log.info("not chosen: %s: the configuration does not name it", name)


GRAPHS = Kind("dump", "The training itself", "the configuration matched no tensor of this run", "msdump: dump report")
MODELS = Kind(
    "ACL dump", "The models themselves", "the configuration selects no operator of the models that ran", "ACL dump"
)
EAGER = Kind("eager data dump", "The model itself", "the filter chose no operator of the graphs that ran", item="value")
CAPTURED = Kind(
    "dump of captured graphs", "The model itself", "the filter chose no operator of the graphs that ran", item="value"
)


@dataclass(frozen=True, slots=True)
class StepTimes:
    """What dumped steps took, in seconds.

    count    of these steps
    seconds  all of them, and `own_seconds` of that the dump and its callbacks
    usual    the median of one
    plain    the median of steps of this run that were not dumped; None where there was none
    advice   what would make them cheaper, or why that was not used; "" where there is nothing to say
    """

    count: int
    seconds: float
    own_seconds: float
    usual: float
    plain: float | None
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What one dump has got and lost so far. Sizes in bytes, times in seconds.

    iterations_asked  text of the configuration; "" where it chooses none
    tensors_written   those under a name of their own, links included
    calls_named       calls of a dump that shows which there were, and none of their tensors
    bytes_named       size of everything under its names, links included
    skipped           why tensors have no file -> how many
    unseen            type of an operator that runs others -> how many of those no dump was shown
    unmatched         what the configuration names and no graph had, with what to write instead
    advice            sentences on why nothing was chosen
    overflows         operators that overflowed or raised; None when none was looked for, as in an ordinary dump
    lost              tensors that were chosen and are not on disk
    error             why the dump is not complete; None where it is
    training          how many iterations a step of an optimizer has; "" where that is one, or not known
    outside           code of the script that ran outside of the dump, a line for each call site
    steps             what steps took; None where a dump does not know
    notes             how it was dumped, where that is not the ordinary way: which iterations, who saw the operators
    """

    path: str
    kind: Kind = GRAPHS
    iterations_asked: str = ""
    iterations_run: int = 0
    iterations_dumped: int = 0
    operators_seen: int = 0
    operators_selected: int = 0
    tensors_written: int = 0
    calls_named: int = 0
    files: int = 0
    links: int = 0
    bytes_named: int = 0
    bytes_written: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    unseen: dict[str, int] = field(default_factory=dict)
    unmatched: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    overflows: tuple[str, ...] | None = None
    lost: int = 0
    error: str | None = None
    dump_seconds: float = 0.0
    run_seconds: float = 0.0
    training: str = ""
    outside: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    steps: StepTimes | None = None

    @property
    def is_empty(self) -> bool:
        """True when there should be files and none is there; who waits for a failure may well wait in vain."""
        return self.overflows is None and not (self.tensors_written or self.calls_named or self.failure)

    @property
    def failure(self) -> str | None:
        """Why the dump is not complete; None where it is."""
        return self.error or (f"{self.lost} {self.kind.item}s were not written." if self.lost else None)


def merged(path: str, kind: Kind, reports: Sequence[Report]) -> Report:
    """One report of several dumps of one configuration, such as those of its devices."""
    skipped: Counter[str] = Counter()
    unseen: Counter[str] = Counter()
    for report in reports:
        skipped.update(report.skipped)
        unseen.update(report.unseen)
    overflows = [name for report in reports for name in report.overflows or ()]
    counts = {
        item.name: sum(getattr(report, item.name) for report in reports)
        for item in fields(Report)
        if item.type in ("int", "float")
    }
    return Report(
        path,
        kind,
        iterations_asked=next((report.iterations_asked for report in reports), ""),
        skipped=dict(skipped),
        unseen=dict(unseen),
        overflows=tuple(overflows) if any(report.overflows is not None for report in reports) else None,
        error=next((report.error for report in reports if report.error), None),
        **counts,
    )


# -- reports of other processes --------------------------------------------------------------------

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

    def finish(self, report: Report) -> None:
        """The dump has ended. Nothing in a process that was forked from the one that dumps."""
        if os.getpid() == self._process_id:
            counts = report.tensors_written, report.is_empty, report.failure
            self._send(ChildReport(self._process_id, self._path, *counts))

    def _send(self, report: ChildReport) -> None:
        if self._file is None:
            return
        # The process that reads it may have ended already.
        with contextlib.suppress(OSError):
            with open(self._file + ".new", "w", encoding="utf-8") as file:
                json.dump(asdict(report), file)
            os.replace(self._file + ".new", self._file)
