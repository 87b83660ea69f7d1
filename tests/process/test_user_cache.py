from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from msdump.errors import WriteError
from msdump.process.user_cache import cache_folder, existing_cache_folder


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


def test_a_look_for_a_folder_makes_none(home: Path) -> None:
    assert existing_cache_folder("native") is None
    assert not home.exists()
    made = cache_folder("native")
    assert existing_cache_folder("native") == made
    assert existing_cache_folder("index") is None


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
@pytest.mark.parametrize("place", ["native", "."])
def test_a_folder_that_others_can_write_is_not_looked_into(place: str, mode: int, home: Path) -> None:
    made = cache_folder("native")
    (made.parent / place).chmod(mode)
    with pytest.raises(WriteError, match="this user alone can write"):
        existing_cache_folder("native")


def test_a_folder_of_another_user_is_not_looked_into(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache_folder("native")
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    with pytest.raises(WriteError, match=f"expected what belongs to user {own + 1}, got that of user {own}"):
        existing_cache_folder("native")


def test_a_link_is_not_looked_into(home: Path, tmp_path: Path) -> None:
    made = cache_folder("native")
    made.rename(tmp_path / "elsewhere")
    made.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WriteError, match="a link"):
        existing_cache_folder("native")
