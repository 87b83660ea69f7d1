"""Which tensors hold the same numbers: rounding and layouts are no difference, another order is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msdump
from msdump.analysis.compare.values import Figures, Matches, figures_of
from msdump.analysis.distance.metrics import compare_arrays
from msdump.analysis.steps import read_steps
from tests.analysis.small_dump import Array, floats, write_dump

IN, OUT = ("input", 0), ("output", 0)


def figures(folder: Path, *arrays: Array) -> list[Figures]:
    """Of arrays that one dump holds."""
    write_dump(folder, [(f"Net/Add-op{number}", {OUT: array}) for number, array in enumerate(arrays)])
    (step,) = read_steps(msdump.open(folder))
    found = [figures_of(operator.outputs[slot]) for operator in step.operators for slot in operator.outputs]
    assert None not in found
    return [one for one in found if one is not None]


def are_alike(folder: Path, mine: Array, golden: Array) -> bool:
    (left,), (right,) = figures(folder / "mine", mine), figures(folder / "golden", golden)
    return bool(Matches([right]).of(left))


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 999), axes=st.permutations(range(3)), rounding=st.sampled_from([0.0, 1e-6]))
def test_rounding_and_layouts_are_no_difference(
    tmp_path_factory: pytest.TempPathFactory, seed: int, axes: list[int], rounding: float
) -> None:
    rng = np.random.default_rng(seed)
    array = rng.standard_normal((2, 3, 5), dtype=np.float32)
    other = (array * np.float32(1 + rounding)).transpose(axes).copy()
    assert are_alike(tmp_path_factory.mktemp("alike"), array, other)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 999))
def test_numbers_in_another_order_are_a_difference(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    """Reshaped in place of transposed: all figures are equal, the elements are not."""
    array = np.random.default_rng(seed).standard_normal((4, 6), dtype=np.float32)
    folder = tmp_path_factory.mktemp("order")
    assert are_alike(folder / "a", array, array.reshape(6, 4))  # a view
    assert are_alike(folder / "b", array, array.T.copy())
    assert not are_alike(folder / "c", array, array.T.reshape(4, 6).copy())
    assert not are_alike(folder / "d", array, array[::-1].copy())


@pytest.mark.parametrize(
    ("array", "is_plain"),
    [
        (floats(1, 1, 1), True),
        (floats(0.1), False),
        (floats(0.5), True),
        (floats(1, 2), False),
        (floats(0, 1, 1, 0), True),
        (floats(0, 1, 0.5), False),
        (np.array([True, False, True]), True),
        (np.array([3, 1, 2]), False),
        (np.zeros((2, 3), np.float32), True),
        (floats(np.nan, 1, 2), False),
    ],
)
def test_what_many_tensors_hold_tells_nothing(tmp_path: Path, array: Array, is_plain: bool) -> None:
    (found,) = figures(tmp_path, array)
    assert found.is_plain == is_plain
    assert are_alike(tmp_path / "alike", array, array) != is_plain


def test_a_coarser_dtype_has_wider_bounds(tmp_path: Path) -> None:
    array = np.random.default_rng(0).standard_normal((20, 5), dtype=np.float32)
    assert are_alike(tmp_path / "half", array, array.astype(np.float16))
    assert not are_alike(tmp_path / "float", array, (array * np.float32(1.003)))
    assert are_alike(tmp_path / "both", (array * np.float32(1.003)).astype(np.float16), array.astype(np.float16))


@pytest.mark.parametrize("fill", [-1e9, float(np.finfo(np.float32).min)])
def test_masked_scores_agree_by_what_is_not_masked(tmp_path: Path, fill: float) -> None:
    """A fill of -1e9 is so large that beside it no other number counts."""
    scores = np.random.default_rng(0).standard_normal((4, 6), dtype=np.float32)
    hidden = np.tri(4, 6, dtype=bool)
    mine, close, other = (
        np.where(hidden, array, np.float32(fill)) for array in (scores, scores * np.float32(1 + 1e-6), scores * 2)
    )
    assert are_alike(tmp_path / "close", mine, close)
    assert not are_alike(tmp_path / "other", mine, other)
    assert compare_arrays(mine, other).relative_error > 0.4
    assert compare_arrays(mine, close).relative_error < 1e-5


def test_what_cannot_be_read_or_is_empty_has_no_figures(tmp_path: Path) -> None:
    root = write_dump(tmp_path, [("Net/Add-op0", {OUT: floats(1, 2)}), ("Net/Add-op1", {OUT: np.zeros((0, 3), "f4")})])
    file = next(path for path in root.rglob("*.npy") if "op0" in path.name)
    (step,) = read_steps(msdump.open(root))
    file.write_bytes(file.read_bytes()[:-2])
    tensors = [tensor for operator in step.operators for tensor in operator.outputs.values()]
    assert [figures_of(tensor) for tensor in tensors[1:]] == [None]


def test_the_nearest_of_several_comes_first(tmp_path: Path) -> None:
    array = np.random.default_rng(0).standard_normal(50).astype(np.float32)
    golden = figures(tmp_path / "golden", array * np.float32(1 + 5e-5), array)
    (mine,) = figures(tmp_path / "mine", array * np.float32(1 + 1e-6))
    assert Matches(golden).of(mine) == (golden[1].value, golden[0].value)


def test_figures_of_a_large_tensor_are_those_of_all_its_elements(tmp_path: Path) -> None:
    """It is looked at in blocks."""
    size = (1 << 21) + 7
    numbers = np.random.default_rng(0).standard_normal(size, dtype=np.float32)
    numbers[[5, size - 2]] = np.nan, -9.0
    mask = np.zeros(size, np.float32)
    mask[size - 1] = 1
    spoiled = mask.copy()
    spoiled[3] = 0.5
    of_numbers, of_mask, of_spoiled = figures(tmp_path, numbers, mask, spoiled)
    finite = numbers[np.isfinite(numbers)].astype(np.float64)
    assert of_numbers.total == pytest.approx(finite.sum()) and of_numbers.length == pytest.approx(
        np.linalg.norm(finite)
    )
    assert (of_numbers.lowest, of_numbers.largest) == (-9.0, finite.max()) and not of_numbers.is_plain
    assert of_mask.is_plain and not of_spoiled.is_plain
    assert are_alike(tmp_path / "alike", numbers[10:], (numbers[10:] * np.float32(1 + 1e-6)))
