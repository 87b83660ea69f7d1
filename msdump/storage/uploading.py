"""Sending a dump to an object store: all of it, or pack by pack while the run goes on."""

from __future__ import annotations

import os
import queue
import stat
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msdump.errors import ConfigError, shown_argument
from msdump.storage.pack_format import PART_SUFFIX
from msdump.storage.plain import is_temporary, kind_of
from msdump.storage.remote import RemoteObject, canonical, has_content, is_remote, objects_below, put_file


@dataclass(frozen=True, slots=True)
class Sent:
    """What was sent.   there: files whose content the store had already; failed: (path, why)"""

    files: int = 0
    bytes_sent: int = 0
    there: int = 0
    failed: tuple[tuple[str, str], ...] = ()


def upload_tree(root: str | os.PathLike[str], address: str) -> Sent:
    """Send every plain file below a folder whose content the store does not have; hidden temporaries stay.

    Raises: ConfigError for an address that is none, or a folder that is not there; FormatError when the store cannot
            be listed.
    """
    top = os.fspath(root)
    if not is_remote(address):
        raise ConfigError(
            f"ADDRESS: expected an address such as s3://bucket/job, got {shown_argument(address)!r}. Correct it."
        )
    if not os.path.isdir(top):
        raise ConfigError(f"DIR: expected a folder of a dump, got {top!r}, which is none.")
    url = canonical(address)
    known = {known_object.url: known_object for known_object in objects_below(url)}
    return _send(top, url, _files_below(top), known)


@dataclass(frozen=True, slots=True)
class _Files:
    """Files to send, and (path, why) of what cannot be."""

    paths: list[str]
    refused: list[tuple[str, str]]


def _files_below(top: str) -> _Files:
    """Links are not followed: what they name lies elsewhere."""
    found = _Files([], [])

    def refuse(error: OSError) -> None:
        found.refused.append((str(error.filename), str(error.strerror or error)))

    for folder, names, files in os.walk(top, onerror=refuse):
        names[:] = [name for name in names if not is_temporary(name)]
        links = [name for name in names if os.path.islink(os.path.join(folder, name))]
        for name in sorted([*files, *links]):
            if is_temporary(name):
                continue
            path = os.path.join(folder, name)
            why = _problem(path)
            if why:
                found.refused.append((path, why))
            else:
                found.paths.append(path)
    return found


def _problem(path: str) -> str:
    """Why a file cannot be sent; "" where it can."""
    if path.endswith(PART_SUFFIX):
        return "a pack that is still written, or whose writer was killed; `msdump pack --repair` makes it whole"
    try:
        mode = os.lstat(path).st_mode
    except OSError as error:
        return str(error.strerror or error)
    return "" if stat.S_ISREG(mode) else f"expected a plain file, got {kind_of(mode)}"


def _send(top: str, url: str, files: _Files, known: Mapping[str, RemoteObject]) -> Sent:
    count = size = there = 0
    failed = list(files.refused)
    for path in files.paths:
        target = f"{url}/{os.path.relpath(path, top)}"
        try:
            own = os.path.getsize(path)
            if target in known and has_content(known[target], path):
                there += 1
                continue
            put_file(target, path)
        except OSError as error:
            failed.append((path, str(error.strerror or error)))
        else:
            count, size = count + 1, size + own
    return Sent(count, size, there, tuple(failed))


class Uploader:
    """Sends packs in a thread of its own while the dump goes on, and the rest when it has ended.

    root, address  files keep the names that they have below the root
    folders        what is sent at the end lies below them: those of this rank alone
    Raises: ConfigError for a store that no package reads.
    """

    def __init__(self, root: str, address: str, folders: Sequence[str]) -> None:
        self._root = root
        self._url = canonical(address)
        self._folders = dict.fromkeys(folders)
        self._waiting: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._sent: list[Sent] = []
        self._done: set[str] = set()
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, name="msdump-upload", daemon=True)
        # A wrong address is said before the first step.
        for folder in self._folders:
            objects_below(f"{self._url}/{os.path.relpath(folder, root)}")
        self._thread.start()

    def send(self, path: str) -> None:
        """A file that is whole; one that has changed since is sent again."""
        self._waiting.put(path)

    def add(self, folder: str) -> None:
        """A further folder, below the root, of which all is sent at the end."""
        self._folders[folder] = None

    def close(self) -> Sent:
        """Wait for all, and send what is left: side files. Idempotent."""
        if not self._is_closed:
            self._is_closed = True
            self._waiting.put(None)
            self._thread.join()
            below = [_files_below(folder) for folder in self._folders if os.path.isdir(folder)]
            paths = dict.fromkeys(path for report in below for path in report.paths if path not in self._done)
            refused = dict.fromkeys(pair for report in below for pair in report.refused)
            self._sent.append(_send(self._root, self._url, _Files(list(paths), list(refused)), {}))
        return Sent(
            sum(report.files for report in self._sent),
            sum(report.bytes_sent for report in self._sent),
            0,
            tuple(failure for report in self._sent for failure in report.failed),
        )

    def _work(self) -> None:
        while (path := self._waiting.get()) is not None:
            self._done.discard(path)
            if not os.path.exists(path):
                continue  # an old iteration that was removed to make room
            sent = _send(self._root, self._url, _Files([path], []), {})
            # What could not be sent is tried once more at the end, with all that is left.
            if not sent.failed:
                self._sent.append(sent)
                self._done.add(path)
