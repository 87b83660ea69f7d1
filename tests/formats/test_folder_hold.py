"""A folder is held by one at a time, and nothing of that is on disk."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from msdump.errors import WriteError
from msdump.formats.folder_hold import FolderHold


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
from msdump.formats.folder_hold import FolderHold
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
