"""Files are there as a whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import errno
import mmap
import os
import resource
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import WriteError
from msdump.formats import atomic
from msdump.formats.atomic import (
    AppendFile,
    Buffer,
    Folder,
    append_text,
    claim_dir,
    link_or_copy,
    make_dirs,
    write_file,
)


@pytest.fixture(params=["unnamed", "sibling", "sibling without links"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The three ways of publishing a file; real ones take the first that works."""
    if request.param != "unnamed":
        monkeypatch.setattr(atomic, "_O_TMPFILE", 0)
    if request.param == "sibling without links":
        monkeypatch.setattr(os, "link", failing(errno.EPERM))
    return str(request.param)


def failing(number: int) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_a_file_holds_its_chunks(way: str, tmp_path: Path) -> None:
    array = np.arange(3, dtype=np.uint8)
    chunks: list[Buffer] = [b"head", array.data, b"", bytearray(b"tail"), array[:0].data]
    assert write_file(tmp_path / "x", chunks, 0o400) == 11
    assert (tmp_path / "x").read_bytes() == b"head\x00\x01\x02tail"
    assert mode_of(tmp_path / "x") == 0o400
    assert os.listdir(tmp_path) == ["x"]


def test_a_file_that_is_there_stays_unless_it_is_to_be_replaced(way: str, tmp_path: Path) -> None:
    write_file(tmp_path / "x", [b"old"], 0o400)
    with pytest.raises(WriteError, match=r"x: expected a free name, got a file that is there already\. Move it away"):
        write_file(tmp_path / "x", [b"new"], 0o400)
    assert (tmp_path / "x").read_bytes() == b"old"
    write_file(tmp_path / "x", [b"new"], 0o600, replace=True)
    assert (tmp_path / "x").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("umask", [0o000, 0o277, 0o777])
def test_modes_do_not_depend_on_the_umask(way: str, umask: int, tmp_path: Path) -> None:
    old = os.umask(umask)
    try:
        make_dirs(tmp_path / "a" / "b", 0o750)
        write_file(tmp_path / "a" / "b" / "x", [b"1"], 0o440)
    finally:
        os.umask(old)
    assert [mode_of(tmp_path / name) for name in ("a", "a/b", "a/b/x")] == [0o750, 0o750, 0o440]


@pytest.mark.parametrize(
    ("number", "fix"), [(errno.ENOSPC, "free space"), (errno.EDQUOT, "quota"), (errno.EIO, "system log")]
)
def test_a_write_that_fails_leaves_nothing(
    way: str, number: int, fix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "writev", failing(number))
    with pytest.raises(WriteError, match=rf"x: expected to write 5 bytes, got .*{fix}"):
        write_file(tmp_path / "x", [b"12345"], 0o400)
    assert os.listdir(tmp_path) == []


def test_an_interrupt_leaves_nothing(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "writev", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_file(tmp_path / "x", [b"12345"], 0o400)
    assert os.listdir(tmp_path) == []


def test_a_file_size_limit_is_an_error(way: str, tmp_path: Path) -> None:
    """The kernel itself cuts the write short here."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, old[1]))
    try:
        with pytest.raises(WriteError, match="expected to write 4000 bytes, got File too large"):
            write_file(tmp_path / "x", [bytes(4000)], 0o400)
        append_text(tmp_path / "log", "whole\n" * 100, 0o600)
        with pytest.raises(WriteError):
            append_text(tmp_path / "log", "whole\n" * 100, 0o600)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)
    assert os.listdir(tmp_path) == ["log"]
    assert (tmp_path / "log").read_text() == "whole\n" * 100


@settings(max_examples=40, deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=12), st.integers(1, 9), st.integers(1, 3))
def test_short_writes_are_continued(chunks: list[bytes], limit: int, buffers: int) -> None:
    """writev may take any part of what it is given, and only so many buffers."""
    written = bytearray()

    def writev(fd: int, views: list[memoryview]) -> int:
        assert len(views) <= buffers
        taken = b"".join(views)[:limit]
        written.extend(taken)
        return len(taken)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "writev", writev)
        patch.setattr(atomic, "_MAX_BUFFERS", buffers)
        assert atomic._write_all(-1, chunks) == len(b"".join(chunks))
    assert bytes(written) == b"".join(chunks)


def test_files_beyond_2_gib(tmp_path: Path) -> None:
    """One call takes 2 GiB at most. The bytes are a hole on both sides, so little is really written."""
    size = (2 << 30) + 8192
    with open(tmp_path / "source", "wb") as file:
        file.truncate(size)
    seen = []
    writev = os.writev

    def count(fd: int, views: list[memoryview]) -> int:
        left = sum(view.nbytes for view in views)
        seen.append(left)
        # Write the ends for real, and seek over the middle as a kernel would have written it.
        if left > 16384:
            skipped = min(left - 8192, 0x7FFFF000)
            os.lseek(fd, skipped, os.SEEK_CUR)
            return skipped
        return writev(fd, views)

    with (
        open(tmp_path / "source", "rb") as hole,
        mmap.mmap(hole.fileno(), 0, access=mmap.ACCESS_READ) as source,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(os, "writev", count)
        assert write_file(tmp_path / "x", [source], 0o400) == size
    assert (tmp_path / "x").stat().st_size == size
    assert len(seen) > 1


def test_a_file_where_a_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below" / "deeper"):
        with pytest.raises(WriteError, match=r"file: expected a folder, got a file\."):
            make_dirs(path)
    with pytest.raises(WriteError, match="A file sits where a folder should be"):
        write_file(tmp_path / "file" / "x", [b""], 0o400)


@pytest.mark.parametrize(("number", "fix"), [(errno.EACCES, "not writable"), (errno.EROFS, "read-only")])
def test_a_folder_that_cannot_be_made(number: int, fix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "mkdir", failing(number))
    with pytest.raises(WriteError, match=rf"new: expected to make this folder, got .*{fix}"):
        make_dirs(tmp_path / "new")


def test_a_folder_that_another_process_made_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mkdir = os.mkdir

    def race(path: str, mode: int) -> None:
        mkdir(path, 0o711)
        mkdir(path, mode)

    monkeypatch.setattr(os, "mkdir", race)
    make_dirs(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()


def test_folders_that_are_there_keep_their_mode(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir(mode=0o755)
    (tmp_path / "old").chmod(0o755)
    make_dirs(tmp_path / "old" / "new", 0o700)
    assert (mode_of(tmp_path / "old"), mode_of(tmp_path / "old" / "new")) == (0o755, 0o700)


def test_a_place_without_folders() -> None:
    with pytest.raises(WriteError, match=r"/proc/nothing: expected to make this folder, got .* choose another path"):
        make_dirs("/proc/nothing/here")


def test_a_folder_is_claimed_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: claim_dir(tmp_path / "a" / "b", 0o700), range(8)))
    assert sorted(answers) == [False] * 7 + [True]
    assert mode_of(tmp_path / "a") == mode_of(tmp_path / "a" / "b") == 0o700
    (tmp_path / "file").write_text("")
    assert claim_dir(tmp_path / "file") is False
    with pytest.raises(WriteError, match="expected a folder, got a file"):
        claim_dir(tmp_path / "file" / "a")


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with Folder(tmp_path / "a") as folder:
        (tmp_path / "a").rmdir()
        with pytest.raises(WriteError, match="The folder is gone"):
            folder.write("x", [b"1"], 0o400)


@pytest.mark.parametrize("number", [errno.EPERM, errno.EXDEV, errno.EMLINK, errno.EOPNOTSUPP])
@pytest.mark.parametrize("content", [b"", b"content"])
def test_links_or_copies(number: int, content: bytes, tmp_path: Path) -> None:
    write_file(tmp_path / "x", [content], 0o440)
    assert link_or_copy(tmp_path / "x", tmp_path / "linked") is True
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "link", failing(number))
        patch.setattr(atomic, "_O_TMPFILE", 0)
        assert link_or_copy(tmp_path / "x", tmp_path / "copied") is False
    assert (tmp_path / "linked").stat().st_ino == (tmp_path / "x").stat().st_ino
    assert (tmp_path / "copied").stat().st_ino != (tmp_path / "x").stat().st_ino
    assert (tmp_path / "copied").read_bytes() == content
    assert mode_of(tmp_path / "copied") == 0o440


def test_appended_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    for number in range(3):
        append_text(path, f"{number}\n", 0o400)
        assert mode_of(path) == 0o400
    assert path.read_text() == "0\n1\n2\n"


@settings(max_examples=25, deadline=None)
@given(st.binary(max_size=20), st.integers(0, 5000))
def test_a_cut_line_is_removed_before_more_is_appended(content: bytes, pad: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.csv")
        path.write_bytes(content + b"-" * pad)
        append_text(path, "next\n", 0o400)
        whole = path.read_bytes()
    assert whole.endswith(b"next\n")
    kept = whole.removesuffix(b"next\n")
    assert (content + b"-" * pad).startswith(kept)
    assert kept == b"" or kept.endswith(b"\n")
    assert b"\n" not in (content + b"-" * pad)[len(kept) :]


def test_a_full_disk_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    with AppendFile(tmp_path / "x.csv", 0o400) as file:
        file.append("first\n")
        monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:3]))
        with pytest.raises(WriteError, match=r"x\.csv: expected to append 7 bytes, got .*The disk is full"):
            file.append("second\n")
    assert (tmp_path / "x.csv").read_text() == "first\n"


WRITER = """
import sys
from pathlib import Path
import numpy as np
from msdump.formats.npy import NpyWriter
from msdump.records import TensorRecord
root = Path(sys.argv[1])
writer = NpyWriter(lambda record: root)
data = np.ones(1 << 20, np.float32)
print("started", flush=True)
for stamp in range(1_000_000):
    writer.write([TensorRecord("ReLU", "ReLU-op1", 0, 0, stamp, "output", 0, "float32", data)])
"""


def test_a_killed_process_leaves_whole_files(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "out")], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    deadline = time.monotonic() + 30
    while not list((tmp_path / "out").glob("*.npy")) and time.monotonic() < deadline:
        time.sleep(0.005)
    process.kill()
    process.wait()
    process.stdout.close()
    sizes = {path.stat().st_size for path in (tmp_path / "out").iterdir()}
    assert sizes == {128 + (4 << 20)}
