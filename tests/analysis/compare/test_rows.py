"""Rows that the other side has in another order or among others, and what is no such value."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.analysis.compare.dumps import compare_dumps
from msdump.analysis.compare.rows import ValuesWithRows, has_rows, same_rows
from msdump.analysis.compare.sentences import headline
from msdump.analysis.compare.values import Figures, figures_of
from msdump.formats.dump_dir import DumpDir
from tests.analysis.compare.test_across import OUT, A, B, Rows
from tests.analysis.small_dump import Array, write_dump

rng = np.random.default_rng(0)


def figures(folder: Path, *arrays: Array) -> list[Figures]:
    write_dump(folder, [(f"Default/Add-op{number}", {OUT: array}) for number, array in enumerate(arrays)])
    tensors = sorted(DumpDir(folder).tensors(), key=lambda tensor: tensor.file.name.op_name)
    found = [figures_of(tensor) for tensor in tensors]
    return [one for one in found if one is not None]


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(9)), st.integers(2, 8), st.integers(1, 6))
def test_rows_in_any_order_and_among_others_are_found(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], count: int, length: int
) -> None:
    whole = rng.standard_normal((9, length), dtype=np.float32)
    # A row of padding is nobody's.
    part = np.concatenate([whole[order[:count]], np.zeros((int(count == 2), length), np.float32)])
    rounded = (part * np.float32(1 + 1e-6)).astype(np.float32)
    one, other = figures(tmp_path_factory.mktemp("rows"), whole.reshape(3, 3, length), rounded)
    expected = other if has_rows(one) and has_rows(other) else None
    assert same_rows(one, ValuesWithRows([other] if has_rows(one) else []), None) is expected
    if expected is not None:
        assert same_rows(other, ValuesWithRows([one]), None) is one


def test_one_row_that_is_another_is_not_the_same(tmp_path: Path) -> None:
    whole = rng.standard_normal((9, 4), dtype=np.float32)
    part = whole[[3, 1, 7]].copy()
    part[1, 2] *= np.float32(1.01)
    one, other = figures(tmp_path, whole, part)
    assert same_rows(one, ValuesWithRows([other]), None) is None


def test_single_numbers_of_many_agree_by_chance(tmp_path: Path) -> None:
    whole = rng.standard_normal((100_000, 1), dtype=np.float32)
    one, other = figures(tmp_path, whole, whole[50:90].copy())
    assert same_rows(one, ValuesWithRows([other]), None) is None


def test_whole_numbers_and_a_short_row_have_none(tmp_path: Path) -> None:
    indices, single = figures(tmp_path, np.arange(40).reshape(10, 4), rng.standard_normal((1, 3), dtype=np.float32))
    assert not has_rows(indices)
    assert not has_rows(single)


WEIGHT = rng.standard_normal((6, 6), dtype=np.float32)
INPUT = rng.standard_normal((8, 6), dtype=np.float32)


def rows_of(order: list[int], gain: float = 1.0) -> Rows:
    """A layer whose rows are picked before it, and summed up after it."""
    picked = INPUT[order]
    made = picked @ WEIGHT
    active = (np.tanh(made) * np.float32(gain)).astype(np.float32)
    return [
        ("Default/aten_relu_default-op0", {A: INPUT - 1, OUT: INPUT}),
        ("Default/aten_index_Tensor-op1", {A: INPUT, B: np.array(order), OUT: picked}),
        ("Default/aten_mm_default-op2", {A: picked, B: WEIGHT, OUT: made}),
        ("Default/aten_tanh_default-op3", {A: made, OUT: active}),
        ("Default/aten_sum_dim_IntList-op4", {A: active, OUT: active.sum(0)}),
    ]


def golden_rows() -> Rows:
    """The same for all rows in their order, without a choice."""
    made = INPUT @ WEIGHT
    return [
        ("Default/ReLU-op0", {A: INPUT - 1, OUT: INPUT}),
        ("Default/MatMul-op2", {A: INPUT, B: WEIGHT, OUT: made}),
        ("Default/Tanh-op3", {A: made, OUT: np.tanh(made)}),
        ("Default/ReduceSum-op4", {A: np.tanh(made), OUT: np.tanh(made).sum(0)}),
    ]


def test_rows_in_another_order_are_right_as_far_as_they_are_equal(tmp_path: Path) -> None:
    order = [5, 2, 7, 0, 1, 6, 3, 4]
    golden = write_dump(tmp_path / "golden", golden_rows())
    assert compare_dumps(write_dump(tmp_path / "right", rows_of(order)), golden).is_agreeing
    first = headline(compare_dumps(write_dump(tmp_path / "wrong", rows_of(order, 1.5)), golden))[0]
    assert "Default/aten_tanh_default-op3" in first


@pytest.mark.parametrize("is_whole", [True, False])
def test_data_in_another_order_or_less_of_them_are_other_data(tmp_path: Path, is_whole: bool) -> None:
    order = [5, 2, 7, 0, 1, 6, 3, 4][: 8 if is_whole else 5]
    made = INPUT[order] @ WEIGHT
    mine: Rows = [
        ("Default/aten_mm_default-op0", {A: INPUT[order], B: WEIGHT, OUT: made}),
        ("Default/aten_tanh_default-op1", {A: made, OUT: np.tanh(made)}),
        (
            "Default/aten_mul_Tensor-op2",
            {A: np.tanh(made), B: INPUT[: len(order)], OUT: np.tanh(made) * INPUT[: len(order)]},
        ),
    ]
    golden: Rows = [
        ("Default/MatMul-op0", {A: INPUT, B: WEIGHT, OUT: INPUT @ WEIGHT}),
        ("Default/Tanh-op1", {A: INPUT @ WEIGHT, OUT: np.tanh(INPUT @ WEIGHT)}),
        ("Default/Mul-op2", {A: np.tanh(INPUT @ WEIGHT), B: INPUT, OUT: np.tanh(INPUT @ WEIGHT) * INPUT}),
    ]
    said = headline(compare_dumps(write_dump(tmp_path / "mine", mine), write_dump(tmp_path / "golden", golden)))
    assert any("aten_mm_default-op0" in line and line.startswith("first") for line in said)
