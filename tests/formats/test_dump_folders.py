"""Which folders of a dump are found, and what is named instead."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from msdump.analysis.compare.dumps import compare_dumps
from msdump.analysis.find.nan import find_non_finite
from msdump.analysis.overview.listing import list_dump
from msdump.analysis.stat.statistics import tensor_statistics
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_folders import FolderWalk
from tests.analysis.small_dump import write_dump
from tests.formats.test_dump_dir import plain_name, write_npy


def test_links_that_lead_out_are_foreign_and_cycles_end(tmp_path: Path) -> None:
    outside = write_npy(tmp_path / "outside" / plain_name(), np.zeros(1))
    root = tmp_path / "root"
    inside = write_npy(root / "a" / plain_name(), np.zeros(2))
    (root / "a" / "loop").symlink_to(root)
    (root / "out").symlink_to(outside.parent)
    (root / "secret.npy").symlink_to(outside)
    (root / "dangling.npy").symlink_to(root / "nothing")
    (root / "own.npy").symlink_to(inside)
    os.mkfifo(root / "pipe.npy")
    dump = DumpDir.open(root)
    assert sorted(t.op_name for t in dump) == ["Add-op1", "own"]
    foreign = [os.path.relpath(path, root) for path in dump.foreign]
    assert foreign == ["a/loop", "dangling.npy", "out", "pipe.npy", "secret.npy"]


def test_folders_are_walked_to_a_bounded_depth(tmp_path: Path) -> None:
    folder = tmp_path
    for depth in range(44):
        write_npy(folder / plain_name(f"Add-op{depth}"), np.zeros(1))
        folder /= "d"
    assert {tensor.op_name for tensor in DumpDir.open(tmp_path)} == {f"Add-op{depth}" for depth in range(41)}


def test_a_folder_that_cannot_be_read_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_npy(tmp_path / "a" / plain_name("Add-op1"), np.zeros(1))
    write_npy(tmp_path / "b" / plain_name("Add-op2"), np.zeros(1))
    scandir = os.scandir

    def refuse(path: str) -> object:
        if os.path.basename(path) == "a":
            raise PermissionError(13, os.strerror(13), path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    dump = DumpDir.open(tmp_path)
    assert [tensor.op_name for tensor in dump] == ["Add-op2"]
    assert [path for path, _ in dump.damaged] == [str(tmp_path / "a")]


def test_folders_are_listed_once_for_several_questions(tmp_path: Path) -> None:
    write_npy(tmp_path / plain_name("Add-op1"), np.float32([1]))
    dump = DumpDir(tmp_path)
    with dump.listed_once():
        before = list(dump.files())
        write_npy(tmp_path / plain_name("Add-op2"), np.float32([1]))
        with dump.listed_once():
            assert list(dump.files()) == before and len(before) == 1
        assert list(dump.files()) == before
    assert len(list(dump.files())) == 2


@pytest.mark.parametrize(
    "question", [find_non_finite, list_dump, tensor_statistics, lambda dump: compare_dumps(dump, dump)]
)
def test_a_question_lists_the_folders_once(
    question: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listing fifty thousand files takes a tenth of a question's time."""
    dump = write_dump(tmp_path / "dump", [("Net/Log-op0", {("output", 0): np.ones(3, np.float32)})])
    listings: list[object] = []
    folders = FolderWalk.folders
    monkeypatch.setattr(FolderWalk, "folders", lambda walk: listings.append(walk) or folders(walk))
    question(dump)
    assert len(listings) == 1


def test_what_lies_beside_the_tensors_is_found_by_one_listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dump = DumpDir.open(write_dump(tmp_path / "dump", [("Net/Log-op0", {("output", 0): np.ones(3, np.float32)})]))
    listings: list[object] = []
    folders = FolderWalk.folders
    monkeypatch.setattr(FolderWalk, "folders", lambda walk: listings.append(walk) or folders(walk))
    for count, name in enumerate(("layouts", "training_steps", "gradients"), 1):
        assert not getattr(dump, name)
        assert len(listings) == count
