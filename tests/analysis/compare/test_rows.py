"""Rows that the other side has in another order or among others, and what is no such value."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.analysis.compare.confirm import Confirmation
from msdump.analysis.compare.dumps import compare_dumps
from msdump.analysis.compare.rows import ValuesWithRows, has_rows
from msdump.analysis.compare.sentences import headline
from msdump.analysis.compare.trace import Trace
from msdump.analysis.compare.values import Figures, figures_of
from msdump.analysis.steps import read_steps
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
    assert ValuesWithRows([other] if has_rows(one) else [], None).with_rows_of(one) is expected
    if expected is not None:
        assert ValuesWithRows([one], None).with_rows_of(other) is one


def test_one_row_that_is_another_is_not_the_same(tmp_path: Path) -> None:
    whole = rng.standard_normal((9, 4), dtype=np.float32)
    part = whole[[3, 1, 7]].copy()
    part[1, 2] += np.float32(0.1)
    one, other = figures(tmp_path, whole, part)
    assert ValuesWithRows([other], None).with_rows_of(one) is None


def test_single_numbers_of_many_agree_by_chance(tmp_path: Path) -> None:
    whole = rng.standard_normal((100_000, 1), dtype=np.float32)
    one, other = figures(tmp_path, whole, whole[50:90].copy())
    assert ValuesWithRows([other], None).with_rows_of(one) is None


def test_a_value_is_found_among_many_of_its_shape(tmp_path: Path) -> None:
    """As one word among those of many layers: what has no such row is not looked at."""
    values = [rng.standard_normal((6, 8), dtype=np.float32) for _ in range(60)]
    word, *others = sorted(figures(tmp_path, *values, values[41][2:3].copy()), key=lambda one: one.size)
    found = ValuesWithRows(others, None).with_rows_of(word)
    assert found is not None and np.array_equal(found.tensor.load()[2:3], word.tensor.load())


WORDS = rng.standard_normal((2, 6, 4), dtype=np.float32)
KEYS = np.tanh(WORDS)


def test_a_word_that_is_written_into_a_cache_is_that_of_a_whole_sentence(tmp_path: Path) -> None:
    """The keys of one word after another, each written into memory that is read as a whole in the end."""
    mine: Rows = []
    for word in range(6):
        key = KEYS[:, word : word + 1]
        mine = [
            *mine,
            (f"Default/aten_tanh_default-op{word}", {A: WORDS[:, word : word + 1], OUT: key}),
            (f"Default/aten_copy__default-op{word}", {A: np.zeros_like(key), B: key, OUT: key}),
        ]
    readers: list[Rows] = [[("Default/aten_exp_default-op0", {A: KEYS, OUT: np.exp(off * KEYS)})] for off in (1, 2)]
    golden: Rows = [("Default/aten_tanh_default-op0", {A: WORDS, OUT: KEYS}), *readers[0]]
    other = write_dump(tmp_path / "golden", golden)
    right, wrong = (write_dump(tmp_path / f"mine{at}", [*mine, *reader]) for at, reader in enumerate(readers))
    assert compare_dumps(right, other).is_agreeing
    assert headline(compare_dumps(wrong, other))[0].startswith("first wrong operator: Default/aten_exp_default-op0")


def test_a_state_that_nothing_reads_says_nothing_of_what_made_it(tmp_path: Path) -> None:
    """The last state of a cell: what computes with it agrees, and it is stacked for nobody."""
    state = np.sin(WORDS)
    before: Rows = [("Default/aten_sin_default-op0", {A: WORDS, OUT: state})]
    mine: Rows = [
        *before,
        ("Default/aten_add_Tensor-op0", {A: state, OUT: state + 1}),
        ("Default/aten_exp_default-op0", {A: state + 1, OUT: np.exp(state + 1)}),
        ("Default/aten_stack_default-op0", {A: state + 1, OUT: np.stack([state + 1] * 2)}),
    ]
    golden: Rows = [
        *before,
        ("Default/aten_exp_default-op1", {A: state, OUT: np.exp(state)}),
        ("Default/aten_mul_Tensor-op0", {A: np.exp(state), B: np.full(3, np.e), OUT: np.exp(state + 1)}),
    ]
    traces = [
        Trace(read_steps(DumpDir(write_dump(tmp_path / name, rows))))
        for name, rows in (("mine", mine), ("golden", golden))
    ]
    confirmed = Confirmation(traces[0], traces[1], None)
    right = {placed.operator.op_name: confirmed.is_right(placed, True) for placed in traces[0].row}
    assert right["aten_add_Tensor-op0"] is True and right["aten_stack_default-op0"] is False


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
