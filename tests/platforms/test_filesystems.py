"""The trial of file systems: it sees what a folder offers, and tells a wrong dump from a right one."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.platforms import filesystems


@pytest.fixture(scope="module")
def dumps(needs_mindspore: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One dump of each kind, as it is."""
    root = tmp_path_factory.mktemp("dumps")
    for kind in filesystems.KINDS:
        assert filesystems.dump(root / kind, kind, ()).returncode == 0
    return {kind: root / kind / "dump" for kind in filesystems.KINDS}


@pytest.mark.parametrize("kind", filesystems.KINDS)
def test_a_folder_that_refuses_all_three_gets_the_same_dump(kind: str, dumps: dict[str, Path], tmp_path: Path) -> None:
    expected = filesystems.content(dumps[kind])
    assert expected
    is_right, words = filesystems.try_way(tmp_path / "x", kind, tuple(filesystems.REFUSALS), expected)
    assert is_right, words
    assert ", 0 hard links, " in words
    assert not words.endswith(", 0 calls refused")


@pytest.mark.parametrize("kind", filesystems.KINDS)
def test_a_changed_byte_and_a_missing_file_are_seen(kind: str, dumps: dict[str, Path], tmp_path: Path) -> None:
    expected = filesystems.content(dumps[kind])
    copy = tmp_path / "copy"
    shutil.copytree(dumps[kind], copy)
    file = max((path for path in copy.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    data = file.read_bytes()
    file.unlink()
    assert filesystems.content(copy) != expected
    file.write_bytes(data)
    assert filesystems.content(copy) == expected
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert filesystems.content(copy) != expected


def test_a_failed_run_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filesystems, "SCRIPT", "raise SystemExit('no room')")
    assert filesystems.try_way(tmp_path / "x", "sync npy", (), {}) == (False, "exit status 1: no room")


def test_what_a_folder_refuses_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in filesystems.REFUSALS:
        with monkeypatch.context() as context:
            context.setattr(os, "open", os.open)
            context.setattr(os, "link", os.link)
            calls = filesystems.refuse(name)
            assert filesystems.offers(tmp_path)[name] is False
            assert calls.total() == 1
        assert list(tmp_path.iterdir()) == []


def test_a_refused_call_has_the_error_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", os.link)
    filesystems.refuse("hard links")
    (tmp_path / "x").touch()
    with pytest.raises(PermissionError) as caught:
        os.link(tmp_path / "x", tmp_path / "y")
    assert caught.value.errno == errno.EPERM


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    command = [sys.executable, filesystems.__file__, str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "none: expected a folder, got none" in done.stderr
