"""Builds of msdump-native in the user's cache: which one a process takes, and what it does not take."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from msdump.errors import WriteError  # noqa: E402
from msdump.frontends.torch.eager import native_builds  # noqa: E402
from msdump.frontends.torch.eager.native_builds import build_name, existing_build, offer, sources  # noqa: E402
from msdump.process.user_cache import cache_folder  # noqa: E402


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    build_name.cache_clear()
    before = list(sys.meta_path)
    yield tmp_path / "msdump"
    sys.meta_path[:] = before
    build_name.cache_clear()


@pytest.fixture
def build(cache: Path) -> Path:
    """Of the right name, and with one module of Python's."""
    folder = cache_folder("native") / build_name()
    folder.mkdir(mode=0o700)
    (folder / "msdump_native.py").write_text("INTERFACE = 'of a build'\n")
    (folder / "msdump_native.py").chmod(0o600)
    return folder


def test_where_nothing_was_built_nothing_is_read_or_made(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_builds, "sources", lambda: pytest.fail("it reads the sources"))
    assert existing_build() is None and not cache.exists()


def test_a_build_of_this_name_is_found(build: Path) -> None:
    assert existing_build() == build
    build.rename(build.parent / ("0" * 16))
    assert existing_build() is None


def test_what_the_sources_hold(cache: Path) -> None:
    found = sources()
    assert {"compiling.py", "msdump_native.py", "_msdump_native_cuda.py", "src/module.cpp"} <= found.keys()
    assert "setup.py" not in found


@pytest.mark.parametrize("part", sorted(native_builds.purpose()))
def test_another_purpose_has_another_build(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, purpose = build_name(), native_builds.purpose()
    build_name.cache_clear()
    assert build_name() == before
    build_name.cache_clear()
    monkeypatch.setattr(native_builds, "purpose", lambda: {**purpose, part: "another"})
    assert build_name() != before


def test_other_sources_have_another_build(monkeypatch: pytest.MonkeyPatch) -> None:
    before, found = build_name(), sources()
    build_name.cache_clear()
    monkeypatch.setattr(native_builds, "sources", lambda: {**found, "src/module.cpp": b"// another"})
    assert build_name() != before


@pytest.mark.parametrize("place", ["msdump_native.py", "."])
def test_what_others_can_write_is_not_loaded(place: str, build: Path) -> None:
    (build / place).chmod(0o722)
    with pytest.raises(WriteError, match="this user alone can write"):
        existing_build()


def test_a_link_in_the_place_of_a_build_is_not_followed(build: Path) -> None:
    build.rename(build.parent / "elsewhere")
    build.symlink_to(build.parent / "elsewhere")
    with pytest.raises(WriteError, match="a link"):
        existing_build()


def test_what_belongs_to_another_user_is_not_loaded(build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    with pytest.raises(WriteError, match="belongs to user"):
        existing_build()


def test_a_build_that_was_cut_is_not_loaded(build: Path) -> None:
    assert "all its files" in native_builds.why_damaged(build)
    native_builds.describe(build)
    assert native_builds.why_damaged(build) == ""
    (build / "msdump_native.py").write_text("INT")
    assert "expected 25 bytes, got 3" in native_builds.why_damaged(build)
    (build / "msdump_native.py").unlink()
    assert "all its files" in native_builds.why_damaged(build)


def test_its_modules_are_found_and_no_others(build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (build / "other_module.py").write_text("")
    if importlib.util.find_spec("msdump_native") is not None:
        pytest.skip("a package is installed")
    os.utime(build, (1, 1))
    offer(build)
    found = importlib.util.find_spec("msdump_native")
    assert found is not None and found.origin == str(build / "msdump_native.py")
    assert importlib.util.find_spec("other_module") is None
    assert build.stat().st_mtime > 1, "it counts as used"


def test_an_installed_package_comes_first(build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "msdump_native.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.delitem(sys.modules, "msdump_native", raising=False)
    offer(build)
    found = importlib.util.find_spec("msdump_native")
    assert found is not None and found.origin == str(tmp_path / "site" / "msdump_native.py")
