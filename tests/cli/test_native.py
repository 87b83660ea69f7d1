"""`msdump native`: what it says, and its exit status; builds are made in tests/frontends/torch/eager."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from msdump.cli.main import main
from msdump.frontends.torch.eager import native, native_building


@pytest.fixture(autouse=True)
def nothing_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """And the cache is new."""
    hide(monkeypatch, "msdump_native")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "msdump"


def hide(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    find: Callable[..., Any] = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else find(name))


@pytest.mark.parametrize(
    ("is_new", "said"), [(True, "is built, checked in a dump, and used from now on"), (False, "was built before")]
)
def test_it_says_in_a_line_where_the_build_is(
    is_new: bool, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(native_building, "build", lambda *_: (Path("/cache/abc"), is_new))
    assert main(["native"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("msdump-native for PyTorch ") and said in line and line.endswith(": /cache/abc")


def test_without_pytorch(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    hide(monkeypatch, "torch")
    assert main(["native"]) == 2
    assert "msdump native: expected PyTorch" in capsys.readouterr().err


def test_where_nothing_was_built(nothing_is_installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["native", "--check"]) == 3 and main(["native", "--remove"]) == 3
    out = capsys.readouterr().out
    assert "msdump-native is not built for PyTorch" in out and "removed: 0" in out
    assert not nothing_is_installed.exists()


def test_a_package_comes_before_a_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = importlib.util.spec_from_file_location("msdump_native", tmp_path / "msdump_native.py")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: spec)
    monkeypatch.setattr(native_building, "build", lambda *_: pytest.fail("it is built"))
    monkeypatch.setattr(native, "why_not_native", lambda: "")
    assert main(["native"]) == 0
    assert "is installed as a package, and works" in capsys.readouterr().out
    monkeypatch.setattr(native, "why_not_native", lambda: "It was built for another release.")
    assert main(["native", "--check"]) == 2
    assert "pip uninstall msdump-native, then msdump native" in capsys.readouterr().err
