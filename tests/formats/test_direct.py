"""Writing past the page cache: the same bytes as any other write, whatever lies where in memory."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import WriteError
from msdump.formats import direct
from msdump.formats.atomic import Folder
from msdump.tensors.arrays import Array

PAGE = direct.PAGE


def placed(data: Array, phase: int) -> Array:
    """The bytes at an address with this remainder modulo a page."""
    raw = np.empty(data.size + 2 * PAGE, np.uint8)
    start = -raw.ctypes.data % PAGE + phase
    raw[start : start + data.size] = data
    return raw[start : start + data.size]


def noise(size: int, seed: int) -> Array:
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Beside the tests, because the place for temporary files is often in memory."""
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent) as name:
        yield Path(name)


sizes = st.one_of(
    st.integers(0, 3 * PAGE),
    st.sampled_from([direct.DIRECT_BYTES, direct._RUN_BYTES, direct._BUFFER_BYTES]).flatmap(
        lambda size: st.integers(size - 2 * PAGE, size + 2 * PAGE)
    ),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(sizes, st.one_of(st.none(), st.integers(0, PAGE - 1))), max_size=4), st.integers(0, 99))
def test_any_chunks_anywhere(folder: Path, plan: list[tuple[int, int | None]], seed: int) -> None:
    """None: where the chunk's address and its place in the file agree, as staging arranges it."""
    chunks: list[Array] = []
    for size, phase in plan:
        here = sum(chunk.size for chunk in chunks) % PAGE if phase is None else phase
        chunks.append(placed(noise(size, seed), here))
    expected = b"".join(chunk.tobytes() for chunk in chunks)
    with tempfile.TemporaryDirectory(dir=folder) as name, Folder(name, is_direct=True) as target:
        assert target.write("x", [chunk.data for chunk in chunks], 0o400) == len(expected)
        assert Path(name, "x").read_bytes() == expected
        assert os.listdir(name) == ["x"]


def test_big_files_pass_by_the_page_cache_where_that_exists(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    write_direct = direct.write_direct

    def count(fd: int, chunks: Sequence[direct.Buffer]) -> int:
        calls.append(fd)
        return write_direct(fd, chunks)

    monkeypatch.setattr(direct, "write_direct", count)
    data = placed(noise(direct.DIRECT_BYTES, 0), 0)
    for is_direct in (False, True):
        with Folder(folder, is_direct) as target:
            target.write(f"small-{is_direct}", [data[:-1].data], 0o400)
            target.write(f"big-{is_direct}", [data.data], 0o400)
            knows = direct.filesystem_type(os.stat(folder).st_dev) in ("ext4", "xfs")
            assert target._is_direct == (is_direct and knows)
    assert len(calls) == knows


def test_a_filesystem_that_refuses_gets_plain_writes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "is_worthwhile", lambda fd: True)

    def refuse(fd: int, chunks: object) -> int:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(direct, "write_direct", refuse)
    data = noise(direct.DIRECT_BYTES, 1)
    with Folder(folder, is_direct=True) as target:
        target.write("refused", [data.data], 0o400)
        assert not target._is_direct
    assert (folder / "refused").read_bytes() == data.tobytes()


def test_a_full_disk_is_said_and_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "is_worthwhile", lambda fd: True)
    monkeypatch.setattr(direct, "O_DIRECT", 0)
    monkeypatch.setattr(os, "pwrite", lambda fd, view, place: 0)
    with (
        tempfile.TemporaryDirectory(dir=folder) as name,
        Folder(name, is_direct=True) as target,
    ):
        with pytest.raises(WriteError, match=r"to write 1048576 bytes, got No space left on device\. The disk is full"):
            target.write("x", [noise(1 << 20, 2).data], 0o400)
        assert os.listdir(name) == []


def test_short_writes_go_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, view, place: pwrite(fd, view[: 5 * PAGE], place))
    data = placed(noise(direct.DIRECT_BYTES + 77, 3), 0)
    with Folder(folder, is_direct=True) as target:
        assert target.write("short", [data.data], 0o400) == data.size
    assert (folder / "short").read_bytes() == data.tobytes()


def test_the_type_of_a_filesystem() -> None:
    assert direct.filesystem_type(os.stat("/proc").st_dev) == "proc"
    assert direct.filesystem_type(os.makedev(4000, 1)) == ""


def test_a_system_that_does_not_say_has_no_types(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("builtins.open", refuse)
    assert direct.filesystem_type.__wrapped__(os.stat("/proc").st_dev) == ""
