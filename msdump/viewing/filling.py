"""Filling the index of a dump: first names, then measurements, then what was found; again when the dump grows.

It runs in a process of its own, so that the server answers meanwhile, and ends with the server. What was measured is
kept when it is stopped.
"""

from __future__ import annotations

import gc
import gzip
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from msdump._version import __version__
from msdump.analysis.measurements import Measurements
from msdump.analysis.overview.contents import Contents, has_tensors
from msdump.errors import MsdumpError
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_tensor import DumpedTensor
from msdump.formats.selection import ALL_STEPS, StepSelection
from msdump.viewing.index import Index, Progress, TensorPlace
from msdump.viewing.pages import SCHEMA, Pages, encoded
from msdump.viewing.report_file import asset

_LOOK_SECONDS = 2.0  # between two looks at whether the dump has grown
# Hundreds of thousands of objects that stay: with Python's own thresholds a quarter of the time goes into looking
# through them for garbage, of which there is none.
_GARBAGE_THRESHOLDS = 50_000, 50, 1000
_TELL_SECONDS = 0.3  # between two words about how far it is
# A page with the numbers of the moment is made when that takes at most this share of the time.
_ROUGH_SHARE = 0.1
_ROUGH_SECONDS = 3.0
GOLDEN = "golden/"
# Stages of the progress.
MEASURING, COMPARING, ASKING_RANKS, READY, FAILED = "measuring", "comparing", "comparing ranks", "ready", "failed"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be looked at.

    is_followed  whether to go on when all is done, for a dump that grows
    """

    dump: str
    golden: str | None = None
    mapping: str | None = None
    selection: StepSelection = ALL_STEPS
    thread_count: int | None = None
    is_followed: bool = False


def fill(wanted: Wanted, path: Path, parent: int | None = None) -> None:
    """Fill the index at a path; what is wrong is told by its progress.

    parent  process with which this one ends; it is there for this alone
    """
    if parent is not None:
        gc.set_threshold(*_GARBAGE_THRESHOLDS)
    with Index(path) as index:
        index.require(program())
        while True:
            stamp = stamp_of(wanted)
            progress = index.progress
            if (progress.stamp, progress.stage) != (stamp, READY):
                _fill_once(wanted, index, stamp)
            while wanted.is_followed and stamp_of(wanted) == stamp:
                time.sleep(_LOOK_SECONDS)
                if parent is not None and os.getppid() != parent:
                    return
            if not wanted.is_followed:
                return


def program() -> str:
    """What makes and shows the answers: those of another one may lack something."""
    return hashlib.sha256(repr((__version__, SCHEMA, asset("app.js"))).encode()).hexdigest()


def stamp_of(wanted: Wanted) -> str:
    """Changes when a file comes, goes or changes; made without opening one."""
    digest = hashlib.sha256(repr((wanted.mapping, wanted.selection)).encode())
    for root in (wanted.dump, wanted.golden, wanted.mapping):
        if root is not None:
            for line in _files_below(root):
                digest.update(line)
    return digest.hexdigest()


def _files_below(root: str) -> Iterator[bytes]:
    folders = [root]
    try:
        status = os.stat(root)
        yield repr((status.st_ino, status.st_size, status.st_mtime_ns)).encode()
    except OSError:
        return
    while folders:
        folder = folders.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue  # a file, or one that may not be read: opening the dump tells
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            yield os.fsencode(entry.path)
            yield b"%d %d %d" % (status.st_ino, status.st_size, status.st_mtime_ns)


def _fill_once(wanted: Wanted, index: Index, stamp: str) -> None:
    def contents(measurements: Measurements, **options: Any) -> Contents:
        how = {"thread_count": wanted.thread_count, **options}
        return Contents(dump, golden, wanted.selection, mapping=wanted.mapping, measurements=measurements, **how)

    def rough() -> Contents:
        is_known = index.has_measurements
        measurements = Measurements(index if is_known else None, has_exponents=True, is_complete=False)
        # Nothing is read: threads would only wait for each other.
        how = {"is_compared": False, "is_searched": is_known or not has_tensors(dump), "thread_count": 1}
        return contents(measurements, **how)

    teller = _Teller(index, Progress(index.progress.version, stamp), rough)
    try:
        dump = DumpDir.open(wanted.dump, keeps_headers=True)
        golden = None if wanted.golden is None else DumpDir.open(wanted.golden, keeps_headers=True)
        teller.show(rough(), MEASURING)
        whole = contents(Measurements(index, has_exponents=True), progress=teller.measured)
        # Both ask for the same measurements; the first one makes them.
        _ = whole.statistics, whole.non_finite
        index.flush()
        if golden is not None:
            teller.stage = COMPARING
        if whole.has_ranks:
            # The vote reads the dump once more: what is known is shown before.
            teller.show(whole, ASKING_RANKS)
            whole = whole.with_job()
        teller.show(whole, READY)
    except MsdumpError as error:
        teller.fail(str(error))


class _Teller:
    """Puts progress and answers into the index, not too often.

    rough  makes the contents of the moment, from what is measured
    """

    def __init__(self, index: Index, progress: Progress, rough: Callable[[], Contents]) -> None:
        self._index = index
        self._progress = progress
        self._rough = rough
        self._told = self._shown = time.monotonic()
        self._cost = 0.0
        self.stage = MEASURING
        index.progress = progress

    def measured(self, done: int, total: int) -> None:
        """Take that so many bytes are measured."""
        now = time.monotonic()
        if now - self._told < _TELL_SECONDS:
            return
        self._told = now
        self._progress = replace(self._progress, stage=self.stage, done=done, total=total)
        if self.stage == MEASURING and now - self._shown > max(_ROUGH_SECONDS, self._cost / _ROUGH_SHARE):
            self._index.flush()
            self.show(self._rough(), MEASURING)
        else:
            self._index.progress = self._progress

    def show(self, contents: Contents, stage: str) -> None:
        """Put the answers of this moment there."""
        began = time.monotonic()
        pages = Pages(contents)
        answers = [(path, gzip.compress(encoded(pages.get(path)), 5, mtime=0)) for path in pages.paths()]
        self._progress = replace(self._progress, version=self._progress.version + 1, stage=stage)
        self._index.replace(answers, _locations(pages, contents), self._progress)
        self._shown = time.monotonic()
        self._cost = self._shown - began

    def fail(self, message: str) -> None:
        """Say what is wrong; answers of before stay."""
        self._index.progress = replace(self._progress, stage=FAILED, message=message)


def _locations(pages: Pages, contents: Contents) -> Iterator[tuple[str, int, TensorPlace]]:
    """Where the tensors of all steps lie, and those that they were compared with."""
    comparison = contents.comparison
    partners: dict[tuple[str, str, int], DumpedTensor] = {}
    if comparison is not None:
        for result in comparison.operators:
            for tensor in result.tensors:
                partners[_name(tensor.mine)] = tensor.golden
    for path in pages.paths():
        if path.startswith("step/"):
            step = path.removeprefix("step/")
            for number, row in enumerate(pages.tensors(path)):
                yield step, number, _location(row.tensor)
                golden = partners.get(_name(row.tensor))
                if golden is not None:
                    yield f"{GOLDEN}{step}", number, _location(golden)


def _name(tensor: DumpedTensor) -> tuple[str, str, int]:
    return tensor.path, tensor.where, tensor.offset


def _location(tensor: DumpedTensor) -> TensorPlace:
    return TensorPlace(tensor.path, tensor.io, tensor.slot, tensor.part, tensor.keyword, tensor.offset)
