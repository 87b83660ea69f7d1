"""A dump that goes to a callback instead of files: the same bytes under the same names, in chunks.

Source: CANN, `acldumpRegCallback`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from msdump.errors import WriteError
from msdump.formats.direct import Buffer
from msdump.formats.paths.sync import MAPPING_FILE
from msdump.formats.writer import LongNames

LARGEST_CHUNK = 128 << 20
APPEND = -1


@dataclass(frozen=True, slots=True)
class DumpChunk:
    """A piece of a file.

    file_name  path of the file below the root of the dump, with `/`
    data       valid only while the callback runs
    is_last    nothing of this file comes any more, for now: mapping.csv grows with each name that is too long
    offset     where the piece belongs; -1: behind what came before
    """

    file_name: str
    data: bytes | memoryview
    is_last: bool
    offset: int = APPEND
    flag: int = 0


class ChunkSink:
    """Hands chunks to a callback, one file after the other. Any thread may call it.

    callback   its exceptions end the dump
    """

    def __init__(self, callback: Callable[[DumpChunk], object], largest: int = LARGEST_CHUNK) -> None:
        self._callback = callback
        self._largest = largest
        self._lock = threading.Lock()

    def deliver(self, file_name: str, pieces: Sequence[Buffer]) -> int:
        """Returns the bytes of the file.   Raises: WriteError when the callback fails."""
        whole = list(_sized(pieces, self._largest))
        with self._lock:
            for number, data in enumerate(whole, 1):
                try:
                    self._callback(DumpChunk(file_name, data, number == len(whole)))
                except Exception as error:
                    raise WriteError(
                        f"{file_name}: expected the callback to take chunk {number} of {len(whole)}, it raised "
                        f"{type(error).__name__}: {error}. Mend it, or dump to files."
                    ) from error
        return sum(len(data) for data in whole)


class ChunkFolder:
    """One folder of a dump that goes to a callback."""

    def __init__(self, path: Path, sink: ChunkSink) -> None:
        self._path = path.as_posix()
        self._sink = sink
        self._names = LongNames(lambda _: False, self._append_mapping)

    def fitting_name(self, name: str, suffix: str) -> str:
        """As on a disk: the receiver of the chunks may write them to files."""
        return self._names.fitting(name, suffix)

    def write(
        self, name: str, chunks: Sequence[Buffer], mode: int, replace: bool = False, tensors_from: int = 0
    ) -> int:
        """Raises: WriteError."""
        return self._sink.deliver(f"{self._path}/{name}", chunks)

    def close(self) -> None:
        """Nothing is open between two calls."""

    def _append_mapping(self, mapped: str, original: str) -> None:
        self._sink.deliver(f"{self._path}/{MAPPING_FILE}", [f"{mapped},{original}\n".encode()])


def _sized(pieces: Sequence[Buffer], largest: int) -> Iterator[bytes | memoryview]:
    """The same bytes in chunks: small pieces together, large ones cut and never copied.

    Edges: nothing at all is one empty chunk.
    """
    waiting: list[bytes | memoryview] = []
    size = 0
    is_empty = True
    for piece in pieces:
        view = memoryview(piece).cast("B")
        if size + len(view) <= largest and len(view) <= _COPIED_BYTES:
            waiting.append(view)
            size += len(view)
            continue
        if size:
            yield b"".join(waiting)
            waiting, size, is_empty = [], 0, False
        for start in range(0, len(view), largest):
            yield view[start : start + largest]
            is_empty = False
    if size or is_empty:
        yield b"".join(waiting)


_COPIED_BYTES = 64 << 10
