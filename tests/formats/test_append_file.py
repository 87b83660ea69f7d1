"""Text files that grow: whole lines, their own mode, and no other file behind the name."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import WriteError
from msdump.formats.append_file import AppendFile, append_text
from msdump.formats.atomic import Folder
from msdump.formats.sidecars import append_history
from msdump.formats.statistic_csv import StatisticWriter
from msdump.formats.writer import DumpFolder
from tests.contracts.writer_contract import record


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


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


@pytest.mark.parametrize("way", ["unnamed", "named"])
def test_a_new_file_begins_with_its_head(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "named":
        monkeypatch.setattr(Folder, "open_with_head", lambda *_: None)
    path = tmp_path / "x.csv"
    for number, is_new in enumerate([True, False, False]):
        with AppendFile(path, 0o400, head="head\n") as file:
            assert (file.is_new, file.first_line()) == (is_new, "head")
            file.append(f"{number}\n")
    assert path.read_text() == "head\n0\n1\n2\n" and mode_of(path) == 0o400
    (tmp_path / "empty.csv").write_text("cut")
    with AppendFile(tmp_path / "empty.csv", 0o400, head="head\n") as file:
        assert file.is_new
    assert (tmp_path / "empty.csv").read_text() == "head\n"


def test_a_file_is_never_there_without_its_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However early the process is killed: at every call to the system the name is free, or the head is there."""
    seen = []

    def look(name: str, call: Callable[..., object]) -> Callable[..., object]:
        def looked(*arguments: object, **keywords: object) -> object:
            seen.extend(path.read_text() for path in tmp_path.iterdir())
            return call(*arguments, **keywords)

        return looked

    for name in ("open", "writev", "fchmod", "link", "write", "fstat", "pread", "stat", "close"):
        monkeypatch.setattr(os, name, look(name, getattr(os, name)))
    with AppendFile(tmp_path / "x.csv", 0o400, head="head\n"):
        pass
    monkeypatch.undo()
    assert seen and set(seen) == {"head\n"}


def test_a_full_disk_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    room = 3

    def write_some(fd: int, data: bytes) -> int:
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken, room = data[:room], 0
        return write(fd, taken)

    with AppendFile(tmp_path / "x.csv", 0o400) as file:
        file.append("first\n")
        monkeypatch.setattr(os, "write", write_some)
        with pytest.raises(WriteError, match=r"x\.csv: expected to append 7 bytes, got .*The disk is full"):
            file.append("second\n")
    assert (tmp_path / "x.csv").read_text() == "first\n"


def test_a_write_that_takes_a_part_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system may take less than all also where there is room."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:3]))
    with AppendFile(tmp_path / "x.csv", 0o400) as file:
        assert file.append("second line\n") == 12
    assert (tmp_path / "x.csv").read_text() == "second line\n"


def test_a_folder_that_takes_no_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not as one that is gone, which the second look for a read-only file would say."""
    opened = Folder.open_file

    def refuse(self: Folder, name: str, flags: int, mode: int = 0) -> int:
        if flags & os.O_CREAT:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return opened(self, name, flags, mode)

    monkeypatch.setattr(Folder, "open_file", refuse)
    with pytest.raises(WriteError, match=r"x\.csv: expected a text file .* not writable for this user"):
        append_text(tmp_path / "x.csv", "1\n", 0o400)


@pytest.mark.parametrize("is_dangling", [False, True])
def test_a_link_is_refused_and_its_target_stays(is_dangling: bool, tmp_path: Path) -> None:
    """Cut to whole lines and made read-only it would be, were the link followed."""
    target = tmp_path / "target"
    if not is_dangling:
        target.write_bytes(b"no line end")
        target.chmod(0o640)
    (tmp_path / "x.csv").symlink_to(target)
    with pytest.raises(WriteError, match=r"x\.csv: expected a text file .* A symbolic link has this name"):
        append_text(tmp_path / "x.csv", "1\n", 0o400)
    if is_dangling:
        assert not target.exists()
    else:
        assert (target.read_bytes(), mode_of(target)) == (b"no line end", 0o640)


def test_a_link_is_refused_also_when_the_file_is_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As any user but root meets it: finished files refuse to be written."""
    (tmp_path / "target").write_bytes(b"")
    (tmp_path / "target").chmod(0o640)
    (tmp_path / "x.csv").symlink_to("target")
    opened, flags_seen = Folder.open_file, []

    def refuse(self: Folder, name: str, flags: int, mode: int = 0) -> int:
        flags_seen.append(flags)
        if len(flags_seen) == 1:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return opened(self, name, flags, mode)

    monkeypatch.setattr(Folder, "open_file", refuse)
    with pytest.raises(WriteError, match="A symbolic link has this name"):
        append_text(tmp_path / "x.csv", "1\n", 0o400)
    assert mode_of(tmp_path / "target") == 0o640
    (tmp_path / "x.csv").unlink()
    append_text(tmp_path / "x.csv", "1\n", 0o400)
    flags_seen.clear()
    append_text(tmp_path / "x.csv", "2\n", 0o400)
    assert (tmp_path / "x.csv").read_text() == "1\n2\n" and mode_of(tmp_path / "x.csv") == 0o400


def test_anything_but_a_plain_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with pytest.raises(WriteError, match="expected a plain file to append to, got a pipe"):
        append_text(tmp_path / "pipe", "1\n", 0o400)
    with pytest.raises(WriteError, match="folder: expected a text file to append to"):
        append_text(tmp_path / "folder", "1\n", 0o400)


def test_an_error_of_close_is_a_write_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    close = os.close

    def lose(fd: int) -> None:
        is_plain = stat.S_ISREG(os.fstat(fd).st_mode)
        close(fd)
        if is_plain:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    file = AppendFile(tmp_path / "x.csv", 0o400)
    monkeypatch.setattr(os, "close", lose)
    with pytest.raises(WriteError, match=r"x\.csv: expected to close it after writing, got .*system log"):
        file.close()
    file.close()  # a second time it is closed already: the descriptor may be another file's now


def statistic(folder: Path) -> str:
    with contextlib.closing(StatisticWriter(lambda _: folder)) as writer:
        writer.write([record()])
        writer.end_iteration(0, 0)
    return "statistic.csv"


def history(folder: Path) -> str:
    append_history(folder / "history.csv", 3)
    return "history.csv"


def mapping(folder: Path) -> str:
    with DumpFolder(folder, 0o400, 0o700) as opened:
        opened.fitting_name("x" * 300, ".npy")
    return "mapping.csv"


@pytest.mark.parametrize("write", [statistic, history, mapping])
def test_no_text_file_of_a_dump_is_written_through_a_link(write: Callable[[Path], str], tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    name = write(tmp_path / "plain")
    assert os.listdir(tmp_path / "plain") == [name]
    target = tmp_path / "target"
    target.write_bytes(b"whole line\nno line end")
    target.chmod(0o640)
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / name).symlink_to(target)
    with pytest.raises(WriteError, match=f"{name}: .* A symbolic link has this name"):
        write(tmp_path / "linked")
    assert (target.read_bytes(), mode_of(target)) == (b"whole line\nno line end", 0o640)


def test_a_file_that_was_removed_meanwhile_is_an_error(tmp_path: Path) -> None:
    file = AppendFile(tmp_path / "statistic.csv", 0o600)
    file.append("a,b\n")
    (tmp_path / "statistic.csv").unlink()
    file.append("1,2\n")
    with pytest.raises(WriteError, match="it was removed, and its lines with it"):
        file.close()
    file.close()
