"""Which hashes of packs were found to be those of the data, kept in the user's cache."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from msdump.errors import WriteError
from msdump.process.user_cache import cache_folder
from msdump.storage.sources import Source

_FILE = "verified.sqlite"
# Another number means another file.
_TABLE = """
create table if not exists verified_1 (
    device integer, inode integer, size integer, changed integer, state integer, positions blob, used integer,
    primary key (device, inode, size, changed, state)
) without rowid
"""
_MOST_ROWS = 50_000
_INT64 = range(-(1 << 63), 1 << 63)
# A file that was written this lately may be written again without another time.
_SETTLED_NS = 2_000_000_000


def _folder() -> Path:
    return cache_folder("packs")


class Verified:
    """Positions in archives whose hashes were found right, kept over the end of the process.

    Edges:  a cache that cannot be written, or is damaged, keeps nothing: what it had is verified again.
    """

    def __init__(self, folder: Callable[[], Path] = _folder) -> None:
        self.folder = folder
        self._lock = threading.Lock()

    def of(self, source: Source) -> set[int]:
        """Positions that are known of the archive as it is now."""
        key = _key(source)
        if key is None:
            return set()
        with (
            contextlib.suppress(sqlite3.Error, OSError, WriteError, ValueError),
            self._database(is_new=False) as database,
        ):
            query = "select positions from verified_1 where (device, inode, size, changed, state) = (?, ?, ?, ?, ?)"
            row = database.execute(query, key).fetchone()
            if row is not None:
                return set(np.frombuffer(row[0], np.int64).tolist())
        return set()

    def keep(self, source: Source, positions: set[int]) -> None:
        """Remember them for the archive as it is now."""
        key = _key(source)
        # An object of a store has no times: another content is another stamp.
        if key is None or (source.state_ns and time.time_ns() - max(key[3:]) < _SETTLED_NS):
            return
        blob = np.array(sorted(positions), np.int64).tobytes()
        with contextlib.suppress(sqlite3.Error, OSError, WriteError), self._database(is_new=True) as database, database:
            values = (*key, blob, int(time.time()))
            database.execute("insert or replace into verified_1 values (?, ?, ?, ?, ?, ?, ?)", values)
            (count,) = database.execute("select count(*) from verified_1").fetchone()
            if count > _MOST_ROWS:
                query = (
                    "delete from verified_1 where used <= (select used from verified_1 order by used limit 1 offset ?)"
                )
                database.execute(query, (count - _MOST_ROWS // 2,))

    @contextlib.contextmanager
    def _database(self, is_new: bool) -> Iterator[sqlite3.Connection]:
        """Raises: OSError; WriteError; sqlite3.Error."""
        path = self.folder() / _FILE
        with self._lock:
            if is_new:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(path, (os.O_CREAT if is_new else 0) | os.O_RDWR | os.O_NOFOLLOW, 0o600))
            with contextlib.closing(sqlite3.connect(path, timeout=5)) as database:
                try:
                    database.execute(_TABLE)
                except sqlite3.DatabaseError as error:
                    # What is damaged here can be made again; what another process holds is not damaged.
                    if not isinstance(error, sqlite3.OperationalError):
                        path.unlink(missing_ok=True)
                    raise
                yield database


def _key(source: Source) -> tuple[int, int, int, int, int] | None:
    key = (*source.stamp, source.state_ns)
    return key if all(number in _INT64 for number in key) else None


verified = Verified()
