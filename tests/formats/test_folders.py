"""Folders of a dump: whole paths, exact modes, claimed once, and never made through a link."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from msdump.errors import ConfigError, WriteError
from msdump.formats.folders import (
    _FIXES,
    FolderHold,
    FolderHolds,
    claim_dir,
    close_written,
    held_for_change,
    make_dirs,
    write_error,
)


def failing(number: int) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.parametrize(("number", "fix"), [(errno.EACCES, "not writable"), (errno.EROFS, "read-only")])
def test_a_folder_that_cannot_be_made(number: int, fix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "mkdir", failing(number))
    with pytest.raises(WriteError, match=rf"new: expected to make this folder, got .*{fix}"):
        make_dirs(tmp_path / "new")


def test_a_folder_that_another_process_made_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mkdir = os.mkdir

    def race(path: str, mode: int, dir_fd: int) -> None:
        mkdir(path, 0o711, dir_fd=dir_fd)
        mkdir(path, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "mkdir", race)
    make_dirs(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()


def test_folders_that_are_there_keep_their_mode(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir(mode=0o755)
    (tmp_path / "old").chmod(0o755)
    make_dirs(tmp_path / "old" / "new", 0o700)
    assert (mode_of(tmp_path / "old"), mode_of(tmp_path / "old" / "new")) == (0o755, 0o700)


def test_a_new_folder_is_for_its_owner_alone(tmp_path: Path) -> None:
    make_dirs(tmp_path / "a" / "b")
    assert mode_of(tmp_path / "a") == mode_of(tmp_path / "a" / "b") == 0o700


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


@pytest.mark.parametrize("is_early", [True, False])
def test_a_link_that_takes_the_place_of_a_new_folder_is_not_followed(
    is_early: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others who may write to the folder above can put a link there at any moment."""
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o755)
    victim.chmod(0o755)
    mkdir = os.mkdir

    def race(name: str, mode: int, dir_fd: int) -> None:
        if is_early:
            os.symlink(victim, name, dir_fd=dir_fd)
        mkdir(name, 0o711, dir_fd=dir_fd)
        os.rename(name, "moved", src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
        os.symlink(victim, name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "mkdir", race)
    with pytest.raises(WriteError, match="new: expected"):
        make_dirs(tmp_path / "new" / "below")
    assert mode_of(victim) == 0o755 and os.listdir(victim) == []


@pytest.mark.parametrize("path", ["a", "a/", "a//b///", "./a/./b", "a/b/../c", "../{}/a"])
def test_paths_in_any_spelling(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = path.format(tmp_path.name)
    make_dirs(path)
    make_dirs(path)
    assert os.path.isdir(path)
    make_dirs("/")
    make_dirs(".")


def test_a_link_to_a_folder_that_was_there_is_followed(tmp_path: Path) -> None:
    """Users put the ranks of a dump on other disks."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "rank_0").symlink_to("disk")
    make_dirs(tmp_path / "rank_0" / "Net")
    assert (tmp_path / "disk" / "Net").is_dir()


@pytest.mark.parametrize("path", ["out/", "out//", "a/b/", "a//b", "a/./b/", "a/../b/"])
def test_a_path_is_made_however_it_is_written(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_dirs(path)
    assert Path(path).is_dir()
    make_dirs(path)
    assert claim_dir(path) is False
    assert claim_dir(f"new/{path}") is True and Path(f"new/{path}").is_dir()


def test_a_handle_that_does_not_close_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written through it, so nothing is lost."""
    close = os.close

    def lose(fd: int) -> None:
        close(fd)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "close", lose)
        make_dirs(tmp_path / "a" / "b")
        assert claim_dir(tmp_path / "a" / "c") and not claim_dir(tmp_path / "a" / "c")
    assert (tmp_path / "a" / "b").is_dir()


def test_what_is_in_the_way_need_not_be_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    look = os.stat

    def fail_by_handle(*arguments: Any, **keywords: Any) -> Any:
        if "dir_fd" in keywords:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return look(*arguments, **keywords)

    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", fail_by_handle)
        with pytest.raises(WriteError, match="file: expected"):
            make_dirs(tmp_path / "file")


def test_one_at_a_time(tmp_path: Path) -> None:
    first = FolderHold.take(tmp_path)
    assert first is not None
    assert FolderHold.take(tmp_path) is None
    assert not list(tmp_path.iterdir())
    first.release()
    first.release()
    second = FolderHold.take(tmp_path)
    assert second is not None
    second.release()


def test_only_folders_are_held(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match="file: expected a folder to dump into, got Not a directory"):
        FolderHold.take(tmp_path / "file")


def test_other_folders_are_free(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    holds = [FolderHold.take(tmp_path), FolderHold.take(tmp_path / "below")]
    for hold in holds:
        assert hold is not None
        hold.release()


def test_a_copy_that_a_forked_process_closes_keeps_the_folder(tmp_path: Path) -> None:
    first = FolderHold.take(tmp_path)
    assert first is not None
    shared = FolderHold(os.dup(first._descriptor))
    shared.leave_to_parent()
    assert FolderHold.take(tmp_path) is None
    first.release()


def test_a_folder_that_cannot_be_opened_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match=r"nothing: expected a folder to dump into, got No such file"):
        FolderHold.take(tmp_path / "nothing")


def test_a_process_without_standard_input_lets_a_folder_go(tmp_path: Path) -> None:
    """Its first descriptor is 0."""
    script = """
import os, sys
from msdump.formats.folders import FolderHold
os.close(0)
first = FolderHold.take(sys.argv[1])
assert first._descriptor == 0 and FolderHold.take(sys.argv[1]) is None
first.release()
first.release()
assert FolderHold.take(sys.argv[1])._descriptor == 0
os.fstat(1)
"""
    subprocess.run([sys.executable, "-c", script, tmp_path], check=True)


def test_an_error_when_a_folder_is_closed_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hold = FolderHold.take(tmp_path)
    assert hold is not None
    close = os.close

    def fail(descriptor: int) -> None:
        close(descriptor)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "close", fail)
        assert FolderHold.take(tmp_path) is None
        hold.release()
    again = FolderHold.take(tmp_path)
    assert again is not None
    again.release()


def test_a_file_system_without_locks_refuses_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(descriptor: int, operation: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", flock)
    holds = [FolderHold.take(tmp_path), FolderHold.take(tmp_path)]
    for hold in holds:
        assert hold is not None
        hold.release()


@pytest.mark.parametrize("number", sorted(_FIXES), ids=errno.errorcode.__getitem__)
def test_an_error_has_a_reason_and_a_fix(number: int) -> None:
    error = write_error("x", "room", OSError(number, os.strerror(number)))
    assert str(error) == f"x: expected room, got {os.strerror(number)}. {_FIXES[number]}"


def test_an_error_without_a_number_or_a_known_fix_is_told_as_it_is() -> None:
    assert str(write_error("x", "room", OSError("odd"))) == "x: expected room, got odd."
    assert str(write_error("x", "room", OSError(errno.ENOTTY, "no terminal"))) == "x: expected room, got no terminal."


def test_what_cannot_be_closed_is_not_written() -> None:
    descriptor = os.open(os.devnull, os.O_WRONLY)
    close_written(descriptor, "x")
    with pytest.raises(WriteError, match="x: expected to close it after writing, got Bad file descriptor"):
        close_written(descriptor, "x")


# -- commands that change what is there --------------------------------------------------------------------------------


def test_a_command_is_refused_below_a_folder_that_a_process_dumps_into(tmp_path: Path) -> None:
    (tmp_path / "rank_0" / "Net" / "5").mkdir(parents=True)
    (tmp_path / "rank_1").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "rank_0" / "Net")
    hold = FolderHold.make(tmp_path / "rank_0", "")
    for folder in ("rank_0", "rank_0/Net", "rank_0/Net/5", "link/5", "link"):
        with held_for_change([tmp_path / folder]) as busy:
            assert busy == f"another process writes into {tmp_path / 'rank_0'} now"
    for folder in ("rank_1", ".", "missing"):
        with held_for_change([tmp_path / folder]) as busy:
            assert busy == ""
    hold.release()
    with held_for_change([tmp_path / "rank_0" / "Net", tmp_path / "rank_0" / "Net" / "5"]) as busy:
        assert busy == ""


def test_a_process_is_refused_while_a_command_changes_files_below(tmp_path: Path) -> None:
    (tmp_path / "rank_0" / "5").mkdir(parents=True)
    (tmp_path / "rank_1").mkdir()
    with held_for_change([tmp_path / "rank_0" / "5"]):
        assert FolderHold.take(tmp_path / "rank_0") is None
        with pytest.raises(ConfigError, match="a command that changes files in it"):
            FolderHold.make(tmp_path / "rank_0", "")
        other = FolderHold.take(tmp_path / "rank_1")
        assert other is not None
        other.release()
    hold = FolderHold.take(tmp_path / "rank_0")
    assert hold is not None
    hold.release()


def test_two_commands_change_two_folders_and_not_one(tmp_path: Path) -> None:
    for name in ("5", "6"):
        (tmp_path / name).mkdir()
    with held_for_change([tmp_path / "5"]) as first, held_for_change([tmp_path / "6"]) as second:
        assert first == second == ""
        with held_for_change([tmp_path / "5"]) as again, held_for_change([tmp_path]) as above:
            assert again and above


def test_the_last_of_many_folders_are_held(tmp_path: Path) -> None:
    holds = FolderHolds()
    for number in range(70):
        (tmp_path / str(number)).mkdir()
        holds.add(tmp_path / str(number))
    taken = [number for number in range(70) if FolderHold.take(tmp_path / str(number)) is None]
    assert taken == list(range(6, 70))
    holds.leave_to_parent()
    holds.release()


def test_a_killed_command_holds_nothing(tmp_path: Path) -> None:
    code = (
        "import os, sys\nfrom msdump.formats.folders import held_for_change\n"
        "with held_for_change([sys.argv[1]]) as busy:\n    print(repr(busy), flush=True)\n    os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("''\n", -9)
    with held_for_change([tmp_path]) as busy:
        assert busy == ""
