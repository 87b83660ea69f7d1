"""Files are there as a whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import WriteError
from msdump.formats import atomic
from msdump.formats.append_file import append_text
from msdump.formats.atomic import (
    Buffer,
    Folder,
    link_or_copy,
    make_dirs,
    remove_leftovers,
    scratch_folder,
    write_file,
)
from msdump.formats.dump_dir import DumpDir
from msdump.storage.plain import is_temporary

ROOT = Path(__file__).parents[2]


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
    with pytest.raises(WriteError, match=r"x: expected a free name, got an existing file\. Move it away"):
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


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with Folder(tmp_path / "a") as folder:
        (tmp_path / "a").rmdir()
        with pytest.raises(WriteError, match="The folder was removed"):
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


WRITER = """
import sys
from pathlib import Path
import numpy as np
from msdump.formats.npy import NpyWriter
from msdump.tensors.records import TensorRecord
root = Path(sys.argv[1])
writer = NpyWriter(lambda record: root)
data = np.ones(1 << 20, np.float32)
print("started", flush=True)
for stamp in range(1_000_000):
    writer.write([TensorRecord("ReLU", "ReLU-op1", 0, 0, stamp, "output", 0, "float32", data)])
"""


def test_a_name_that_the_locale_cannot_encode_is_a_clear_error(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from msdump.errors import WriteError\n"
        "from msdump.formats.atomic import write_file\n"
        "try:\n"
        "    write_file(sys.argv[1] + '/\\u6587.npy', [b'1'], 0o400)\n"
        "except WriteError as error:\n"
        "    print(error)\n"
    )
    ascii_only = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=ascii_only, capture_output=True, text=True, check=True)
    assert "expected a name in the encoding of file names, ascii, got '\\u6587'. Set PYTHONUTF8=1" in done.stdout
    assert os.listdir(tmp_path) == []


def leave_a_hidden_file(folder: Path) -> str:
    """Let a process be killed that replaces `x`, between the hidden and the true name of a file; the hidden name."""
    (folder / "x").write_bytes(b"0")
    code = (
        "import os, signal, sys\n"
        "from msdump.formats import atomic\n"
        "os.rename = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)\n"
        "atomic.write_file(sys.argv[1], [b'1'], 0o400, replace=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder / "x")], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL
    (name,) = set(os.listdir(folder)) - {"x"}
    return name


def test_the_next_run_removes_what_a_killed_one_left(way: str, tmp_path: Path) -> None:
    name = leave_a_hidden_file(tmp_path)
    assert name.endswith(".tmp")
    (tmp_path / ".1-2-3.tmp.txt").write_text("not one of these")
    descriptors = os.listdir("/proc/self/fd")
    write_file(tmp_path / "x", [b"2"], 0o400, replace=True)
    assert os.listdir("/proc/self/fd") == descriptors
    assert sorted(os.listdir(tmp_path)) == [".1-2-3.tmp.txt", "x"]
    assert (tmp_path / "x").read_bytes() == b"2"


def test_a_folder_with_the_inode_of_one_that_is_gone_is_looked_through(way: str, tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    (old / "x").write_bytes(b"0")
    write_file(old / "x", [b"1"], 0o400, replace=True)
    old.rename(new)
    (new / "x").unlink()
    leave_a_hidden_file(new)
    write_file(new / "x", [b"2"], 0o400, replace=True)
    assert os.listdir(new) == ["x"]


def test_a_file_whose_name_is_free_never_has_a_hidden_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process then leaves none in a folder that is not written again, as those named after a time."""
    linked: list[str] = []
    link = os.link

    def watched(source: str, name: str, **options: Any) -> None:
        linked.append(name)
        link(source, name, **options)

    monkeypatch.setattr(os, "link", watched)
    write_file(tmp_path / "x", [b"1"], 0o400, replace=True)
    if not linked:
        pytest.skip("no files without names here")
    assert linked == ["x"]
    write_file(tmp_path / "x", [b"2"], 0o400, replace=True)
    assert linked[1] == "x" and linked[2].endswith(".tmp") and os.listdir(tmp_path) == ["x"]


def test_files_that_others_are_writing_stay(way: str, tmp_path: Path) -> None:
    name = tmp_path / leave_a_hidden_file(tmp_path)
    with open(name, "rb") as owner:  # any process, on any machine that shares the folder
        fcntl.flock(owner, fcntl.LOCK_EX)
        write_file(tmp_path / "x", [b"2"], 0o400, replace=True)
        assert sorted(os.listdir(tmp_path)) == [name.name, "x"]


def test_a_file_that_was_taken_for_a_leftover_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic, "_O_TMPFILE", 0)
    lock, names = atomic._lock, []

    def sweep_first(fd: int) -> int:
        names.extend(os.listdir(tmp_path))
        if len(names) == 1:
            os.unlink(tmp_path / names[0])
        return lock(fd)

    monkeypatch.setattr(atomic, "_lock", sweep_first)
    write_file(tmp_path / "x", [b"2"], 0o400)
    assert len(set(names)) == 2 and os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("replace", [False, True])
def test_what_cannot_be_closed_is_not_published(
    way: str, replace: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Network filesystems say when a file is closed that its bytes are lost."""
    close = os.close

    def lose(fd: int) -> None:
        is_plain = stat.S_ISREG(os.fstat(fd).st_mode)
        close(fd)
        if is_plain:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "close", lose)
    with pytest.raises(WriteError, match=r"x: expected to write 1 bytes, got .*system log"):
        write_file(tmp_path / "x", [b"1"], 0o400, replace=replace)
    assert os.listdir(tmp_path) == []


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


@pytest.mark.parametrize("replace", [False, True])
def test_a_sibling_that_is_there_is_never_written_to(
    way: str, replace: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even through a link that somebody placed under a name that is easy to guess."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"kept")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / ".guessed.tmp").symlink_to(victim)
    monkeypatch.setattr(atomic, "_sibling_name", lambda: ".guessed.tmp")
    if way == "unnamed":
        write_file(folder / "file", [b"old"], 0o600, replace)  # a free name needs no sibling
    if way != "unnamed" or replace:
        with pytest.raises(WriteError):
            write_file(folder / "file", [b"new"], 0o600, replace)
    assert (folder / "file").exists() == (way == "unnamed")
    assert way != "unnamed" or (folder / "file").read_bytes() == b"old"
    assert victim.read_bytes() == b"kept"


# -- folders for what is renamed when it is whole ----------------------------------------------------------------------


def test_a_scratch_folder_goes_with_what_is_left_in_it(tmp_path: Path) -> None:
    descriptors = os.listdir("/proc/self/fd")
    with scratch_folder(tmp_path) as scratch:
        assert scratch.parent == tmp_path and is_temporary(scratch.name)
        assert scratch.stat().st_mode & 0o777 == 0o700
        (scratch / "left" / "deep").mkdir(parents=True)
        (scratch / "left" / "deep" / "x").touch()
        (scratch / "link").symlink_to(tmp_path)
        (scratch / "whole").mkdir()
        (scratch / "whole").rename(tmp_path / "whole")
    assert os.listdir(tmp_path) == ["whole"] and os.listdir("/proc/self/fd") == descriptors
    with pytest.raises(ZeroDivisionError), scratch_folder(tmp_path):
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == ["whole"]
    with pytest.raises(WriteError), scratch_folder(tmp_path / "whole" / "x\0"):
        pass


def scratch_of_another(folder: Path, call: str) -> subprocess.Popen[str]:
    """A process with a scratch folder that is not empty, and then makes this call."""
    code = (
        "import os, signal, sys, time\n"
        "from msdump.formats import atomic\n"
        "with atomic.scratch_folder(sys.argv[1]) as scratch:\n"
        "    (scratch / 'x').mkdir(); (scratch / 'x' / 'y').touch()\n"
        "    print(scratch.name, flush=True)\n"
        f"    {call}\n"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", code, str(folder)], cwd=ROOT, text=True, **pipes)


@pytest.mark.parametrize("call", ["os.kill(os.getpid(), signal.SIGKILL)", "os.unlink(scratch / 'lock'), os._exit(1)"])
def test_the_next_run_removes_the_scratch_folder_of_a_killed_one(call: str, tmp_path: Path) -> None:
    with scratch_of_another(tmp_path, call) as process:
        process.communicate()
    (name,) = os.listdir(tmp_path)
    if "unlink" in call:  # nobody knows whose that is, unless it is empty
        remove_leftovers(tmp_path)
        assert os.listdir(tmp_path) == [name]
        shutil.rmtree(tmp_path / name / "x")
        atomic._swept_folders.clear()
    (tmp_path / ".1-2-3.tmp.txt").touch()
    remove_leftovers(tmp_path)
    assert os.listdir(tmp_path) == [".1-2-3.tmp.txt"]
    remove_leftovers(tmp_path / "none")


def test_the_scratch_folder_of_a_living_process_stays(tmp_path: Path) -> None:
    with scratch_of_another(tmp_path, "sys.stdin.read()") as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        with scratch_folder(tmp_path) as scratch:
            assert sorted(os.listdir(tmp_path)) == sorted([name, scratch.name])
        assert os.listdir(tmp_path) == [name] and os.listdir(tmp_path / name / "x") == ["y"]
        process.kill()


@pytest.mark.parametrize("moment", ["when it is made", "before its lock", "before it is locked"])
def test_a_scratch_folder_that_was_taken_for_a_leftover_is_made_again(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_first = iter((True, False))

    def sweep() -> None:
        if next(is_first, False):
            atomic._swept_folders.clear()
            remove_leftovers(tmp_path)
            assert os.listdir(tmp_path) == []

    claim, flock, mkdir = atomic.claim_dir, fcntl.flock, os.mkdir

    def make_and_sweep(*args: Any, **keywords: Any) -> None:
        mkdir(*args, **keywords)
        sweep()

    def claim_and_sweep(path: Path) -> bool:
        claimed = claim(path)
        sweep()
        return claimed

    def sweep_and_lock(fd: int, how: int) -> None:
        if how == fcntl.LOCK_EX:
            sweep()
        flock(fd, how)

    if moment == "when it is made":
        monkeypatch.setattr(os, "mkdir", make_and_sweep)
    elif moment == "before its lock":
        monkeypatch.setattr(atomic, "claim_dir", claim_and_sweep)
    else:
        monkeypatch.setattr(atomic.fcntl, "flock", sweep_and_lock)
    with scratch_folder(tmp_path) as scratch:
        assert os.listdir(tmp_path) == [scratch.name] and os.listdir(scratch) == ["lock"]
    assert os.listdir(tmp_path) == []


def test_a_reader_sees_nothing_of_a_scratch_folder(tmp_path: Path) -> None:
    with scratch_folder(tmp_path) as scratch:
        (scratch / "rank_0/Net/0/0").mkdir(parents=True)
        (scratch / "rank_0/Net/0/0/Add.Add-op1.0.0.1.output.0.DefaultFormat.npy").touch()
        dump = DumpDir.open(tmp_path)
        assert list(dump.tensors()) == [] and not dump.damaged and not dump.foreign
