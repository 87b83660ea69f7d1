"""Sending a dump to an object store: all of it, or pack by pack while the run goes on."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from msdump.errors import ConfigError
from msdump.storage.pack_format import PART_SUFFIX
from msdump.storage.remote import canonical, is_remote, objects_below, put_file


@dataclass(frozen=True, slots=True)
class Sent:
    """What was sent.   there: files that the store had already; failed: (path, why)"""

    files: int = 0
    bytes_sent: int = 0
    there: int = 0
    failed: tuple[tuple[str, str], ...] = ()


def upload_tree(root: str | os.PathLike[str], address: str) -> Sent:
    """Send every plain file below a folder that the store does not have in the same size; hidden temporaries stay.

    Raises: ConfigError for an address that is none, or a folder that is not there; FormatError when the store cannot
            be listed.
    """
    top = os.fspath(root)
    if not is_remote(address):
        raise ConfigError(f"ADDRESS: expected an address such as s3://bucket/job, got {address!r}. Correct it.")
    if not os.path.isdir(top):
        raise ConfigError(f"DIR: expected a folder of a dump, got {top!r}, which is none.")
    url = canonical(address)
    known = {one.url: one.size for one in objects_below(url)}
    return _send(top, url, _files_below(top), known)


def _files_below(top: str) -> list[str]:
    found: list[str] = []
    for folder, _, names in os.walk(top):
        paths = [os.path.join(folder, name) for name in sorted(names) if not name.endswith((".tmp", PART_SUFFIX))]
        found += [path for path in paths if os.path.isfile(path) and not os.path.islink(path)]
    return found


def _send(top: str, url: str, paths: list[str], known: dict[str, int]) -> Sent:
    files = size = there = 0
    failed: list[tuple[str, str]] = []
    for path in paths:
        target = f"{url}/{os.path.relpath(path, top)}"
        try:
            own = os.path.getsize(path)
            if known.get(target) == own:
                there += 1
                continue
            put_file(target, path)
        except OSError as error:
            failed.append((path, str(error.strerror or error)))
        else:
            files, size = files + 1, size + own
    return Sent(files, size, there, tuple(failed))


class Uploader:
    """Sends packs in a thread of its own while the dump goes on, and the rest when it has ended.

    root, address  files keep the names that they have below the root
    folders        what is sent at the end lies below them: those of this rank alone
    Raises: ConfigError for a store that no package reads.
    """

    def __init__(self, root: str, address: str, folders: Sequence[str]) -> None:
        self._root = root
        self._url = canonical(address)
        self._folders = tuple(dict.fromkeys(folders))
        self._waiting: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._sent: list[Sent] = []
        self._done: dict[str, int] = {}
        self._thread = threading.Thread(target=self._work, name="msdump-upload", daemon=True)
        # A wrong address is said before the first step.
        for folder in self._folders:
            objects_below(f"{self._url}/{os.path.relpath(folder, root)}")
        self._thread.start()

    def send(self, path: str) -> None:
        """A file that is whole."""
        self._waiting.put(path)

    def close(self) -> Sent:
        """Wait for all, and send what is left: side files. Idempotent."""
        if self._thread.is_alive():
            self._waiting.put(None)
            self._thread.join()
            paths = dict.fromkeys(path for folder in self._folders for path in _files_below(folder))
            rest = [path for path in paths if path not in self._done]
            self._sent.append(_send(self._root, self._url, rest, {}))
        return Sent(
            sum(one.files for one in self._sent),
            sum(one.bytes_sent for one in self._sent),
            0,
            tuple(failure for one in self._sent for failure in one.failed),
        )

    def _work(self) -> None:
        while (path := self._waiting.get()) is not None:
            if not os.path.exists(path):
                continue  # an old iteration that was removed to make room
            sent = _send(self._root, self._url, [path], {})
            self._sent.append(sent)
            if not sent.failed:
                self._done[path] = sent.files
