"""Only what lies in the given folders is read, whatever a path looks like."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msdump.cli.agents.folders import Folders
from msdump.errors import ConfigError


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """given/dump, given/other, outside/dump, and links between them."""
    for name in ("given/dump", "given/other", "outside/dump", "given-too/dump"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "given/pack.msdpack").write_bytes(b"")
    (tmp_path / "given/out").symlink_to(tmp_path / "outside")
    (tmp_path / "given/inner").symlink_to(tmp_path / "given/dump")
    (tmp_path / "given/nowhere").symlink_to(tmp_path / "gone")
    return tmp_path


@pytest.mark.parametrize(
    "text", ["dump", "./dump", "other/../dump", "inner", "{tree}/given/dump", "{tree}/outside/../given/dump"]
)
def test_what_lies_inside_is_named_by_its_real_path(tree: Path, text: str) -> None:
    assert Folders([str(tree / "given")]).path(text.format(tree=tree)) == str(tree / "given/dump")


@pytest.mark.parametrize(
    "text",
    [
        "/etc", "/", "..", "../outside/dump", "dump/../../outside", "out", "out/dump", "nowhere", "{tree}/outside/dump",
        "{tree}/given-too/dump", "{tree}",
    ],
)  # fmt: skip
def test_what_lies_elsewhere_is_refused(tree: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"path: expected (one inside of|a dump below) .*given"):
        Folders([str(tree / "given")]).path(text.format(tree=tree))


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["..", ".", "dump", "out", "inner", "outside", "given", "", "x\0", "-x"]), max_size=8))
def test_no_path_leads_out(tree: Path, parts: list[str]) -> None:
    root = str(tree / "given")
    for text in ("/".join(parts), f"{tree}/" + "/".join(parts)):
        try:
            path = Folders([root]).path(text)
        except ConfigError:
            continue
        assert path == os.path.realpath(path) and os.path.commonpath([path, root]) == root


def test_several_folders(tree: Path) -> None:
    folders = Folders([str(tree / "given"), str(tree / "outside"), str(tree / "given/other")])
    assert folders.roots == (str(tree / "given"), str(tree / "outside"))
    assert folders.path("other") == str(tree / "given/other")
    assert folders.path("out/dump") == str(tree / "outside/dump")
    with pytest.raises(ConfigError, match=r"expected one dump, got 'dump', which is .*Take one of them"):
        folders.path("dump")


def test_a_path_may_go_on_in_a_pack(tree: Path) -> None:
    assert Folders([str(tree / "given")]).path("pack.msdpack/rank_0").endswith("pack.msdpack/rank_0")


@pytest.mark.parametrize("text", ["", " ", "a\0b"])
def test_no_path(tree: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="path: expected a path of a dump"):
        Folders([str(tree)]).path(text)


def test_only_folders_are_given(tree: Path) -> None:
    with pytest.raises(ConfigError, match="FOLDER: expected a folder, got"):
        Folders([str(tree / "given/pack.msdpack")])
