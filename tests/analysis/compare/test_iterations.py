"""Iterations of two runs that count them differently: by what they compute, and in order once the runs are apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from msdump.analysis.compare.iterations import iterations_of
from msdump.analysis.steps import Step, read_steps
from msdump.formats.dump_dir import DumpDir
from tests.analysis.small_dump import Array, write_dump

A, OUT = ("input", 0), ("output", 0)


def numbers(seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal((3, 4), dtype=np.float32)


def steps(folder: Path, iterations: list[list[int]]) -> list[Step]:
    """A run whose iterations make the numbers of some seeds."""
    for iteration, seeds in enumerate(iterations):
        rows = [(f"Default/ReLU-op{number}", {A: numbers(seed) - 1, OUT: numbers(seed)}) for number, seed in
                enumerate(seeds)]  # fmt: skip
        write_dump(folder, rows, iteration=iteration)
    return list(read_steps(DumpDir(folder)))


def joined(mine: list[Step], golden: list[Step]) -> list[tuple[list[int | None], list[int | None]]]:
    return [
        ([step.key.iteration for step in own], [step.key.iteration for step in other])
        for own, other in iterations_of(mine, golden)
    ]


@pytest.mark.parametrize("is_apart", [False, True])
def test_one_iteration_more_at_the_start_shifts_those_behind_it(tmp_path: Path, is_apart: bool) -> None:
    behind = 100 if is_apart else 0
    mine = steps(tmp_path / "mine", [[1], [2], [3 + behind], [4 + behind], [5 + behind]])
    golden = steps(tmp_path / "golden", [[1, 2], [3], [4], [5]])
    expected: list[tuple[list[int | None], list[int | None]]] = [([0, 1], [0]), ([2], [1]), ([3], [2]), ([4], [3])]
    assert joined(mine, golden) == expected
    assert joined(golden, mine) == [(other, own) for own, other in expected]


def test_each_of_two_calls_is_an_iteration_to_the_end(tmp_path: Path) -> None:
    mine = steps(tmp_path / "mine", [[1], [2], [103], [104], [105], [106]])
    golden = steps(tmp_path / "golden", [[1, 2], [3, 4], [5, 6]])
    assert joined(mine, golden) == [([0, 1], [0]), ([2, 3], [1]), ([4, 5], [2])]


def test_what_comes_out_uneven_is_paired_by_number(tmp_path: Path) -> None:
    mine = steps(tmp_path / "mine", [[1], [2], [103], [104], [105]])
    golden = steps(tmp_path / "golden", [[1, 2], [3], [4], [5], [6], [7]])
    assert joined(mine, golden) == [([number], [number]) for number in range(5)]
