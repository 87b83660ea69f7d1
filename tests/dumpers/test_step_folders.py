"""Folders of the asynchronous dump are held by the process that made them."""

from __future__ import annotations

from pathlib import Path

from msdump.dumpers.step_folders import claim_time
from msdump.formats.folders import FolderHold, FolderHolds, held_for_change


def is_held(folder: Path) -> bool:
    with held_for_change([folder / "kernel_graph_0" / "0"]) as busy:
        return bool(busy) and FolderHold.take(folder) is None


def test_a_claimed_time_is_held_until_the_dump_ends(tmp_path: Path) -> None:
    holds = FolderHolds()
    times = [claim_time(tmp_path, 3, holds) for _ in range(2)]
    assert len(set(times)) == 2
    folders = [tmp_path / time / "3" for time in times]
    for folder in folders:
        (folder / "kernel_graph_0" / "0").mkdir(parents=True)
    assert all(map(is_held, folders))
    holds.release()
    assert not any(map(is_held, folders))
