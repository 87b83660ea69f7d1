"""The order of named tensors that files tell."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from msdump.analysis import compare_dumps

# As three layers compute them; by name the second would come first.
COMPUTED = [f"layer{number}.{name}" for number in range(3) for name in ("norm", "attention", "output")]


def folder(path: Path, wrong: Sequence[str] = (), times: Sequence[str] = COMPUTED) -> Path:
    """Each tensor in a file of its own.   wrong: those that differ; times: names in the order of their times"""
    path.mkdir()
    for number, name in enumerate(COMPUTED):
        values = np.linspace(1, 2, 30, dtype=np.float32) + number
        np.save(path / f"{name}.npy", values * (2 if name in wrong else 1))
        at = 1_700_000_000_000_000_000 + 1_000_000 * list(times).index(name)
        os.utime(path / f"{name}.npy", ns=(at, at))
    return path


def first_of(mine: Path, golden: Path) -> str:
    comparison = compare_dumps(mine, golden)
    assert comparison.first_differing is not None
    return comparison.first_differing.pair.mine.label


WRONG = ("layer1.norm", "layer1.attention", "layer1.output")


def test_times_of_files_tell_what_came_first(tmp_path: Path) -> None:
    assert first_of(folder(tmp_path / "mine", WRONG), folder(tmp_path / "golden")) == "layer1.norm"


def test_times_of_golden_tell_it_where_mine_was_copied_by_name(tmp_path: Path) -> None:
    mine = folder(tmp_path / "mine", WRONG, sorted(COMPUTED))
    assert first_of(mine, folder(tmp_path / "golden")) == "layer1.norm"


@pytest.mark.parametrize("times", [sorted(COMPUTED), COMPUTED[::-1], [*COMPUTED[5:], *COMPUTED[:5]]])
def test_names_tell_it_where_times_do_not_count_layers_up(times: list[str], tmp_path: Path) -> None:
    sides = folder(tmp_path / "mine", WRONG, times), folder(tmp_path / "golden", (), times)
    assert first_of(*sides) == "layer1.attention"


def test_an_archive_tells_the_order_in_which_it_was_filled(tmp_path: Path) -> None:
    sides = []
    for name, wrong in (("mine", WRONG), ("golden", ())):
        (tmp_path / name).mkdir()
        values = {each: np.linspace(1, 2, 30, dtype=np.float32) * (2 if each in wrong else 1) for each in COMPUTED}
        np.savez(tmp_path / name / "tensors.npz", **values)
        sides.append(tmp_path / name)
    assert first_of(*sides) == "layer1.norm"
