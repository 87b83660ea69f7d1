"""Files of nano devices, hand-made after their description: every block is accounted for, or the file is damaged."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from msdump.errors import FormatError, TruncatedFileError
from msdump.formats.dump_file import NANO, read_dump
from msdump.tensors.records import INPUT, OUTPUT

NAME = "Add.net_add.1.2.1700000000000000"
FLOAT32, ND = 0, 2
SHAPE, ORIGINAL, OTHER = 0, 1, 9


def described(head: bytes, *values: tuple[int, bytes]) -> bytes:
    more = b"".join(struct.pack("<2I", tag, len(value)) + value for tag, value in values)
    return head + struct.pack("<I", len(more)) + more


def shape(tag: int, *sizes: int) -> tuple[int, bytes]:
    return tag, struct.pack(f"<{len(sizes)}Q", *sizes)


def an_input(size: int, *values: tuple[int, bytes]) -> bytes:
    return described(struct.pack("<3i3Q", FLOAT32, ND, 0, 0, 0, size), *values)


def an_output(size: int, *values: tuple[int, bytes]) -> bytes:
    return described(struct.pack("<6i3Q", FLOAT32, ND, 0, 0, FLOAT32, ND, 0, 0, size), *values)


def write(
    folder: Path, inputs: Sequence[bytes], outputs: Sequence[bytes], data: bytes, count: int | None = None
) -> Path:
    """`count`: of inputs, as the file tells it."""
    first = struct.pack("<I", len(inputs) if count is None else count) + b"".join(inputs)
    second = struct.pack("<I", len(outputs)) + b"".join(outputs)
    blocks = struct.pack("<2I", 4, len(first)) + first + struct.pack("<2I", 5, len(second)) + second
    head = struct.pack("<2I", 0x5A5A5A5A, 1) + blocks
    path = folder / NAME
    path.write_bytes(struct.pack("<Q", len(head)) + head + data)
    return path


def test_shapes_are_told_apart_by_their_tags(tmp_path: Path) -> None:
    one, two = np.arange(4, dtype=np.float32), np.arange(6, dtype=np.float32)
    inputs = [an_input(16, shape(ORIGINAL, 4), (OTHER, b"12345"), shape(SHAPE, 2, 2))]
    found = read_dump(write(tmp_path, inputs, [an_output(24, shape(ORIGINAL, 6))], one.tobytes() + two.tobytes()))
    assert (found.container, found.op_name) == (NANO, "net_add")
    assert [(each.io, each.slot, each.shape, each.original_shape) for each in found.tensors] == [
        (INPUT, 0, (2, 2), (4,)),
        (OUTPUT, 0, None, (6,)),
    ]
    assert [each.array().reshape(-1).tolist() for each in found.tensors] == [one.tolist(), two.tolist()]


@pytest.mark.parametrize(("more", "error"), [(-1, TruncatedFileError), (1, FormatError)])
def test_all_bytes_are_accounted_for(tmp_path: Path, more: int, error: type[FormatError]) -> None:
    with pytest.raises(error, match=rf"{NAME}: expected \d+ bytes by its head, got \d+\.") as caught:
        read_dump(write(tmp_path, [an_input(8, shape(SHAPE, 2))], [], bytes(8 + more)))
    assert type(caught.value) is error


@pytest.mark.parametrize(
    ("count", "message"), [(1 << 16, "expected"), ((1 << 16) + 1, "expected at most 65536 inputs")]
)
def test_a_count_is_no_promise_of_memory(tmp_path: Path, count: int, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_dump(write(tmp_path, [an_input(0, shape(SHAPE, 0))], [], b"", count))


def test_as_many_tensors_as_a_file_may_have(tmp_path: Path) -> None:
    found = read_dump(write(tmp_path, [an_input(0, shape(SHAPE, 0))] * (1 << 16), [], b""))
    assert len(found.tensors) == 1 << 16
