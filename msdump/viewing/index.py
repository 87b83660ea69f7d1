"""The index of a dump: measurements of its tensors and answers for a viewer, in an SQLite file of the user's cache.

One process fills it, others read it meanwhile. It never lies in a dump: other programs read that folder.

with Index(place_of("dump", None)) as index:
    index.answer("overview")
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from msdump.analysis.measurements import Measurement, StoreKey
from msdump.errors import WriteError
from msdump.process.user_cache import cache_folder
from msdump.statistics.exponents import ExponentHistogram
from msdump.statistics.stats import Statistics

# Number of the tables below and of what stands in them; another number means another file.
FORM = 1
_TABLES = """
create table if not exists tensors (
    device integer, inode integer, offset integer, place text, size integer, changed integer, measured text,
    primary key (device, inode, offset, place, size, changed)
) without rowid;
create table if not exists answers (path text primary key, body blob);
create table if not exists files (step text, number integer, file blob, io text, slot integer, part integer,
    keyword text, offset integer, primary key (step, number)
) without rowid;
create table if not exists state (name text primary key, value text);
"""
_FLUSH_SECONDS = 1.0
_KEPT_SECONDS = 60 * 24 * 3600
_INT64 = range(-(1 << 63), 1 << 63)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the filling has come.

    version  grows with each set of answers
    stamp    of the dump that the answers are about
    stage    "reading names", "measuring", "comparing", "comparing ranks", "ready" or "failed"
    done     bytes measured, of `total`
    message  what went wrong
    """

    version: int = 0
    stamp: str = ""
    stage: str = "reading names"
    done: int = 0
    total: int = 0
    message: str = ""


@dataclass(frozen=True, slots=True)
class TensorPlace:
    """Where the tensor of a row lies."""

    file: str
    io: str
    slot: int
    part: int | None
    keyword: str | None
    offset: int


def index_path(dump: str | os.PathLike[str], golden: str | os.PathLike[str] | None, *more: object) -> Path:
    """The file for a dump (and a golden one, and what else decides about the answers)."""
    parts = [str(FORM), os.path.realpath(dump), "" if golden is None else os.path.realpath(golden), repr(more)]
    return (
        cache_folder("index")
        / f"{hashlib.sha256(chr(0).join(parts).encode(errors='surrogateescape')).hexdigest()}.sqlite"
    )


class Index:
    """One such file. May be used by several threads.

    Raises: WriteError where it can be neither opened nor made.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._waiting: list[tuple[Any, ...]] = []
        self._flushed = time.monotonic()
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600))
            self._database = self._opened()
        except (OSError, sqlite3.Error) as error:
            raise WriteError(f"{path}: expected a place for the index, got: {error}. Try --no-index.") from error

    def _opened(self) -> sqlite3.Connection:
        try:
            return _connected(self.path)
        except sqlite3.DatabaseError:
            # What is damaged here can be made again.
            self.path.write_bytes(b"")
            for ending in ("-wal", "-shm"):
                Path(f"{self.path}{ending}").unlink(missing_ok=True)
            return _connected(self.path)

    def __enter__(self) -> Index:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Write what waits, and let go."""
        with self._lock:
            self.flush()
            self._database.close()

    # -- measurements ----------------------------------------------------------------------------------------------

    def get(self, key: StoreKey) -> Measurement | None:
        """As `Store`."""
        if not all(number in _INT64 for number in (key[0], key[1])):
            return None
        query = "select measured from tensors where (device, inode, offset, place, size, changed) = (?, ?, ?, ?, ?, ?)"
        with self._lock:
            row = self._database.execute(query, key).fetchone()
        return None if row is None else _measurement(row[0])

    @property
    def has_measurements(self) -> bool:
        """Whether `get` could find any."""
        with self._lock:
            return self._database.execute("select 1 from tensors limit 1").fetchone() is not None

    def put(self, key: StoreKey, measurement: Measurement) -> None:
        """As `Store`. It is in the file a second later, or after `flush`."""
        if all(number in _INT64 for number in (key[0], key[1])):
            text = _text(measurement)
            with self._lock:
                self._waiting.append((*key, text))
                if time.monotonic() - self._flushed > _FLUSH_SECONDS:
                    self.flush()

    def flush(self) -> None:
        """Write the measurements that wait."""
        with self._lock:
            self._flushed = time.monotonic()
            if self._waiting:
                with self._database:
                    self._database.executemany(
                        "insert or replace into tensors values (?, ?, ?, ?, ?, ?, ?)", self._waiting
                    )
                self._waiting.clear()

    # -- answers ---------------------------------------------------------------------------------------------------

    def answer(self, path: str) -> bytes | None:
        """JSON, packed by gzip; None for a path that is not there."""
        with self._lock:
            row = self._database.execute("select body from answers where path = ?", (path,)).fetchone()
        return None if row is None else bytes(row[0])

    def paths(self) -> list[str]:
        """All that `answer` knows."""
        with self._lock:
            return [row[0] for row in self._database.execute("select path from answers")]

    def tensor(self, step: str, number: int) -> TensorPlace | None:
        """Where the tensor in that row of a step lies; None where there is no such row."""
        query = "select file, io, slot, part, keyword, offset from files where step = ? and number = ?"
        with self._lock:
            row = self._database.execute(query, (step, number)).fetchone() if number in _INT64 else None
        return None if row is None else TensorPlace(os.fsdecode(row[0]), *row[1:])

    def require(self, program: str) -> None:
        """Drop the answers that another program made; measurements stay."""
        with self._lock, self._database:
            row = self._database.execute("select value from state where name = 'program'").fetchone()
            if row is None or row[0] != program:
                for table in ("answers", "files", "state"):
                    self._database.execute(f"delete from {table}")
                self._database.execute("insert into state values ('program', ?)", (program,))

    def replace(
        self,
        answers: Iterable[tuple[str, bytes]],
        locations: Iterable[tuple[str, int, TensorPlace]],
        progress: Progress,
    ) -> None:
        """Put new answers in the place of all that are there; readers see the ones or the others."""
        with self._lock, self._database:
            self._database.execute("delete from answers")
            self._database.execute("delete from files")
            self._database.executemany("insert into answers values (?, ?)", answers)
            rows = ((step, number, *_columns(location)) for step, number, location in locations)
            self._database.executemany("insert into files values (?, ?, ?, ?, ?, ?, ?, ?)", rows)
            self._write_progress(progress)

    @property
    def progress(self) -> Progress:
        with self._lock:
            row = self._database.execute("select value from state where name = 'progress'").fetchone()
        return Progress() if row is None else Progress(**json.loads(row[0]))

    @progress.setter
    def progress(self, value: Progress) -> None:
        with self._lock, self._database:
            self._write_progress(value)

    def _write_progress(self, progress: Progress) -> None:
        self._database.execute("insert or replace into state values ('progress', ?)", (json.dumps(asdict(progress)),))


def _columns(location: TensorPlace) -> tuple[Any, ...]:
    return os.fsencode(location.file), location.io, location.slot, location.part, location.keyword, location.offset


def _connected(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=60, check_same_thread=False)
    try:
        database.execute("pragma journal_mode = wal")
        database.execute("pragma synchronous = normal")
        database.executescript(_TABLES)
    except sqlite3.Error:
        database.close()
        raise
    return database


def remove_old(folder: Path, now: float) -> None:
    """Remove indexes that no one has written for two months. `now` in seconds, as `time.time` has it."""
    try:
        for entry in os.scandir(folder):
            if ".sqlite" in entry.name and now - entry.stat(follow_symlinks=False).st_mtime > _KEPT_SECONDS:
                os.unlink(entry.path)
    except OSError:
        pass  # another process tidies at the same time, or there is nothing yet


def _text(measurement: Measurement) -> str:
    exponents = measurement.exponents
    counts = None if exponents is None else [exponents.first, exponents.positive, exponents.negative]
    numbers = [getattr(measurement.numbers, name) for name in Statistics.__slots__]
    return json.dumps([numbers, measurement.shape, counts], separators=(",", ":"))


def _measurement(text: str) -> Measurement:
    numbers, shape, counts = json.loads(text)
    exponents = None if counts is None else ExponentHistogram(counts[0], tuple(counts[1]), tuple(counts[2]))
    return Measurement(Statistics(*numbers), tuple(shape), exponents)
