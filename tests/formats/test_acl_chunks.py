"""Chunks are the file, in order and never larger than they may be."""

from __future__ import annotations

import itertools
import re
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import WriteError
from msdump.formats.acl_chunks import LARGEST_CHUNK, ChunkFolder, ChunkSink, DumpChunk
from msdump.formats.bin import BinWriter, bin_chunks
from tests.contracts.writer_contract import record


class Receiver:
    def __init__(self) -> None:
        self.chunks: list[DumpChunk] = []
        self.files: dict[str, bytes] = {}
        self.sizes: list[int] = []

    def __call__(self, chunk: DumpChunk) -> None:
        self.chunks.append(chunk)
        self.sizes.append(len(chunk.data))
        self.files[chunk.file_name] = self.files.get(chunk.file_name, b"") + bytes(chunk.data)


def test_the_largest_chunk_is_that_of_the_original() -> None:
    assert LARGEST_CHUNK == 128 * 1024 * 1024


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(max_size=300), max_size=8), st.integers(1, 100))
def test_chunks_put_together_are_the_file(pieces: list[bytes], largest: int) -> None:
    receiver = Receiver()
    assert ChunkSink(receiver, largest).deliver("a/b", pieces) == len(b"".join(pieces))
    assert receiver.files == {"a/b": b"".join(pieces)}
    assert [chunk.is_last for chunk in receiver.chunks] == [*[False] * (len(receiver.chunks) - 1), True]
    assert all((chunk.offset, chunk.flag) == (-1, 0) for chunk in receiver.chunks)
    assert max(receiver.sizes) <= largest
    assert all(receiver.sizes) or not b"".join(pieces)


def test_large_tensors_are_cut_without_a_copy() -> None:
    array = np.zeros(200_000, np.uint8)
    seen: list[bool] = []

    def look(chunk: DumpChunk) -> None:
        seen.append(bool(len(chunk.data)) and np.shares_memory(np.frombuffer(chunk.data, np.uint8), array))

    ChunkSink(look, 90_000).deliver("x", [b"head", array.data])
    assert seen == [False, True, True, True]


def test_a_writer_delivers_what_it_would_write() -> None:
    receiver = Receiver()
    sink = ChunkSink(receiver)
    folder = Path("20240102030405/0/net/1/0")
    one, long = record(), record(1, op_name="x" * 300)
    writer = BinWriter(lambda _: folder, open_folder=lambda path: ChunkFolder(path, sink))
    writer.write([one])
    writer.write([long])
    writer.close()
    name, mapping, digits = receiver.files
    assert receiver.files[name] == b"".join(bin_chunks([one])) and receiver.files[digits] == b"".join(
        bin_chunks([long])
    )
    assert re.fullmatch(f"{folder}/[0-9]+", digits) and mapping == f"{folder}/mapping.csv"
    assert receiver.files[mapping].decode().startswith(f"{Path(digits).name},ReLU.{'x' * 300}.0.0.")
    assert writer.counts.files == 2


def test_files_of_several_threads_come_one_after_the_other() -> None:
    receiver = Receiver()
    sink = ChunkSink(receiver, 10)
    names = [f"file{number}" for number in range(8)]
    threads = [threading.Thread(target=sink.deliver, args=(name, [name.encode() * 20])) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    order = [chunk.file_name for chunk in receiver.chunks]
    assert [name for name, _ in itertools.groupby(order)] == list(dict.fromkeys(order))
    assert receiver.files == {name: name.encode() * 20 for name in names}


def test_a_callback_that_raises_is_an_error_of_the_file() -> None:
    def refuse(chunk: DumpChunk) -> None:
        raise KeyError("gone")

    with pytest.raises(WriteError, match=r"a/b: expected the callback to take chunk 1 of 1, it raised KeyError"):
        ChunkSink(refuse).deliver("a/b", [b"x"])
