from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from msdump.errors import WriteError
from msdump.process.user_cache import cache_folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    return tmp_path / "home"


def test_xdg_comes_first_then_the_home(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder("index") == home / ".cache" / "msdump" / "index"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder("index") == home / ".cache" / "msdump" / "index"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder("code") == tmp_path / "xdg" / "msdump" / "code"
    assert cache_folder("code").stat().st_mode & 0o077 == 0


def test_a_home_that_cannot_be_written_leaves_the_temporary_folder(home: Path, tmp_path: Path) -> None:
    home.write_text("a file in place of a folder")
    assert cache_folder("code") == tmp_path / "temporary" / f"msdump-cache-{os.geteuid()}" / "code"


def test_a_folder_of_another_user_is_passed_over(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = os.geteuid()
    mine = cache_folder("code")
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    with pytest.raises(WriteError, match="expected a folder for caches"):
        cache_folder("code")
    assert mine.is_dir()


def test_a_link_in_the_shared_folder_is_passed_over(home: Path, tmp_path: Path) -> None:
    home.write_text("")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "temporary" / f"msdump-cache-{os.geteuid()}").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WriteError):
        cache_folder("code")
    assert not list((tmp_path / "elsewhere").iterdir())


def test_what_the_group_may_write_becomes_private(home: Path) -> None:
    base = cache_folder("index").parent
    base.chmod(0o775)
    cache_folder("index")
    assert base.stat().st_mode & 0o077 == 0
