"""Files that are written over those of removed steps hold what any other file would; what is pinned keeps its bytes."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import WriteError
from msdump.formats import spare_files
from msdump.formats.atomic import Folder
from msdump.formats.spare_files import SpareFiles

SMALL = 8


@pytest.fixture(autouse=True)
def small_files_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spare_files, "SMALLEST_BYTES", SMALL)


def give_up(folder: Path, name: str, spares: SpareFiles) -> bool:
    """Remove a file as the rotation does; whether it was kept for others."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if spares.adopt(fd, name, os.stat(name, dir_fd=fd, follow_symlinks=False)):
            return True
        os.unlink(name, dir_fd=fd)
        return False
    finally:
        os.close(fd)


CONTENTS = st.lists(st.binary(max_size=3 * SMALL), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(st.lists(CONTENTS, min_size=1, max_size=5), st.sets(st.tuples(st.integers(0, 4), st.integers(0, 5))))
def test_each_step_reads_as_written_and_pins_stay(steps: list[list[bytes]], pins: set[tuple[int, int]]) -> None:
    with tempfile.TemporaryDirectory() as home:
        root, pinned = Path(home), {}
        spares = SpareFiles(root / "spare")
        (root / "pins").mkdir()
        before: list[str] = []
        for number, contents in enumerate(steps):
            for name in before:
                give_up(root, name, spares)
            with Folder(root, spares=spares) as folder:
                before = [f"{number}-{index}" for index in range(len(contents))]
                for index, (name, content) in enumerate(zip(before, contents, strict=True)):
                    assert folder.write(name, [content[:3], content[3:]], 0o400) == len(content)
                    if (number, index) in pins:
                        os.link(root / name, root / "pins" / name)
                        pinned[name] = content
            for name, content in zip(before, contents, strict=True):
                assert (root / name).read_bytes() == content
                assert stat.S_IMODE((root / name).stat().st_mode) == 0o400
        for name, content in pinned.items():
            assert (root / "pins" / name).read_bytes() == content
            assert stat.S_IMODE((root / "pins" / name).stat().st_mode) == 0o400


def test_a_file_is_written_over_one_of_its_size(tmp_path: Path) -> None:
    spares = SpareFiles(tmp_path / "spare")
    with Folder(tmp_path, spares=spares) as folder:
        folder.write("old", [b"o" * SMALL], 0o400)
        inode = (tmp_path / "old").stat().st_ino
        assert give_up(tmp_path, "old", spares)
        folder.write("new", [b"n" * SMALL], 0o400)
    assert (tmp_path / "new").stat().st_ino == inode
    assert not list((tmp_path / "spare").iterdir())


def test_files_of_other_sizes_make_room(tmp_path: Path) -> None:
    """What is written and what waits do not add up to more than there was before."""
    spares = SpareFiles(tmp_path / "spare")
    with Folder(tmp_path, spares=spares) as folder:
        for index in range(4):
            folder.write(f"old{index}", [b"o" * SMALL], 0o400)
        assert all(give_up(tmp_path, f"old{index}", spares) for index in range(4))
        folder.write("new", [b"n" * 2 * SMALL], 0o400)
        assert len(list((tmp_path / "spare").iterdir())) == 2
    spares.clear()
    assert not list((tmp_path / "spare").iterdir())


def test_a_name_that_is_taken_keeps_its_file(tmp_path: Path) -> None:
    spares = SpareFiles(tmp_path / "spare")
    with Folder(tmp_path, spares=spares) as folder:
        for name in ("old", "new"):
            folder.write(name, [name.encode() * SMALL], 0o400)
        assert give_up(tmp_path, "old", spares)
        with pytest.raises(WriteError, match="expected a free name"):
            folder.write("new", [b"xxx" * SMALL], 0o400)
    assert (tmp_path / "new").read_bytes() == b"new" * SMALL
    assert not list((tmp_path / "spare").iterdir())


def test_small_files_links_and_folders_without_a_place_are_removed(tmp_path: Path) -> None:
    spares = SpareFiles(tmp_path / "spare")
    (tmp_path / "small").write_bytes(b"x" * (SMALL - 1))
    (tmp_path / "target").write_bytes(b"x" * SMALL)
    (tmp_path / "link").symlink_to("target" * SMALL)
    assert not give_up(tmp_path, "small", spares)
    assert not give_up(tmp_path, "link", spares)
    (tmp_path / "spare").write_bytes(b"in the way")
    assert not give_up(tmp_path, "target", spares)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["spare"]
