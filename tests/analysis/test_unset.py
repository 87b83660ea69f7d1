"""Memory that no operator has written yet is blamed for nothing: neither for NaN nor for a difference."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from msdump.analysis import compare_dumps, compare_statistics, find_non_finite, tensor_statistics, write_statistic_files
from msdump.analysis.overview.contents import Contents
from tests.analysis.small_dump import Array, floats, write_dump

IN, OUT = ("input", 0), ("output", 0)
X = floats(1, 2, 3)


def chain(garbage: Array, mask: Array = X) -> list[tuple[str, dict[tuple[str, int], Array]]]:
    """A mask as dropout makes it: memory, a view of it, and the operator that fills it."""
    return [
        ("D/aten_relu_default-op0", {IN: X, OUT: X}),
        ("D/aten_empty_like_default-op1", {IN: X, OUT: garbage}),
        ("D/aten_slice_Tensor-op2", {IN: garbage, OUT: garbage[1:]}),
        ("D/aten_bernoulli_p-op3", {IN: garbage[1:], OUT: mask}),
        ("D/aten_mul_Tensor-op4", {IN: mask, OUT: mask}),
    ]


def filled(garbage: Array, value: Array = X) -> list[tuple[str, dict[tuple[str, int], Array]]]:
    """Memory that an operator fills by what it computes."""
    return [
        ("D/aten_empty_like_default-op1", {IN: X, OUT: garbage}),
        ("D/aten_elu_default-op3", {IN: garbage, OUT: value}),
    ]


@pytest.mark.parametrize("kind", ["tensors", "statistics"])
def test_what_lies_in_unset_memory_is_no_nan(tmp_path: Path, kind: str) -> None:
    write_dump(tmp_path / "tensors", chain(floats(math.nan, math.inf, 1)))
    (statistics,), _ = write_statistic_files(tmp_path / "tensors", tmp_path / "statistics")
    assert find_non_finite({"tensors": tmp_path / "tensors", "statistics": statistics}[kind]).first is None


@pytest.mark.parametrize("kind", ["tensors", "statistics"])
def test_it_is_neither_healthy_nor_suspicious(tmp_path: Path, kind: str) -> None:
    write_dump(tmp_path / "tensors", chain(floats(math.nan, 3.4e38, 3.4e38), mask=floats(1, 3.4e38)))
    (statistics,), _ = write_statistic_files(tmp_path / "tensors", tmp_path / "statistics")
    contents = Contents({"tensors": tmp_path / "tensors", "statistics": statistics}[kind])
    outputs = [row for row in contents.statistics.rows if row.tensor.io == OUT[0]]
    healths = [contents.health.of(row).value for row in outputs]
    unset = [row for row in contents.statistics.rows if row.is_unset]
    assert [(row.tensor.op_name[-3:], row.tensor.io) for row in unset] == [
        *(("op1", "output"), ("op2", "input"), ("op2", "output"), ("op3", "input")),
    ]
    assert {row.numbers.max for row in unset} == {None}
    assert healths == ["ok", "not written yet", "not written yet", "suspicious", "suspicious"]


def test_an_operator_that_computes_with_it_is_the_maker(tmp_path: Path) -> None:
    bad = floats(math.nan, 2, math.nan)
    write_dump(tmp_path, [*chain(bad)[:2], ("D/aten_add_Tensor-op2", {IN: bad, ("input", 1): X, OUT: bad})])
    first = find_non_finite(tmp_path).first
    assert first is not None and first.operator.op_name == "aten_add_Tensor-op2" and first.how == "made"


@pytest.mark.parametrize("writer", ["aten_slice_scatter_default", "aten_index_put_default", "aten_clone_default"])
def test_what_is_only_partly_written_is_no_result_either(tmp_path: Path, writer: str) -> None:
    bad = floats(math.nan, 2, math.nan)
    write_dump(tmp_path, [*chain(bad)[:2], (f"D/{writer}-op2", {IN: bad, OUT: bad})])
    assert find_non_finite(tmp_path).first is None


@pytest.mark.parametrize("kind", ["tensors", "statistics"])
def test_two_runs_need_not_agree_on_it(tmp_path: Path, kind: str) -> None:
    sides = []
    for name, garbage in (("mine", floats(7, 8, 9)), ("golden", floats(0, -1, 4))):
        write_dump(tmp_path / name, chain(garbage))
        (statistics,), _ = write_statistic_files(tmp_path / name, tmp_path / f"{name}_statistics")
        sides.append({"tensors": tmp_path / name, "statistics": statistics}[kind])
    found = (compare_dumps if kind == "tensors" else compare_statistics)(*sides)
    assert found.first_wrong is None and found.is_agreeing


def test_what_is_computed_from_it_must_agree(tmp_path: Path) -> None:
    write_dump(tmp_path / "mine", filled(floats(7, 8, 9)))
    write_dump(tmp_path / "golden", filled(floats(0, -1, 4), floats(1, 2, 5)))
    found = compare_dumps(tmp_path / "mine", tmp_path / "golden")
    assert found.first_wrong is not None and found.first_wrong.pair.mine.op_name == "aten_elu_default-op3"


def test_what_is_drawn_into_it_is_another_draw(tmp_path: Path) -> None:
    write_dump(tmp_path / "mine", chain(floats(7, 8, 9)))
    write_dump(tmp_path / "golden", chain(floats(0, -1, 4), floats(1, 2, 5)))
    found = compare_dumps(tmp_path / "mine", tmp_path / "golden")
    assert found.first_wrong is None
    assert found.first_differing is not None and found.first_differing.pair.mine.op_name == "aten_bernoulli_p-op3"


def test_another_operator_with_equal_values_is_compared(tmp_path: Path) -> None:
    same = floats(7, 8, 9)
    write_dump(tmp_path / "mine", chain(same))
    golden = chain(same)
    golden[0] = ("D/aten_relu_default-op0", {IN: X, OUT: np.flip(X)})
    write_dump(tmp_path / "golden", golden)
    found = compare_dumps(tmp_path / "mine", tmp_path / "golden")
    assert found.first_wrong is not None and found.first_wrong.pair.mine.op_name == "aten_relu_default-op0"


@pytest.mark.parametrize("writer", ["aten_copy__default", "aten_uniform__default", "aten_zero__default"])
def test_what_is_overwritten_unread_is_no_nan(tmp_path: Path, writer: str) -> None:
    bad = floats(math.nan, 2, math.nan)
    write_dump(tmp_path, [(f"D/{writer}-op0", {IN: bad, ("input", 1): X, OUT: X})])
    assert find_non_finite(tmp_path).first is None


def test_what_is_copied_is_judged(tmp_path: Path) -> None:
    bad = floats(math.nan, 2, math.nan)
    write_dump(tmp_path, [("D/aten_copy__default-op0", {IN: X, ("input", 1): bad, OUT: bad})])
    first = find_non_finite(tmp_path).first
    assert first is not None and first.how == "came in"


@pytest.mark.parametrize("is_followed", [True, False])
def test_a_draw_that_reaches_nothing_is_no_difference(tmp_path: Path, is_followed: bool) -> None:
    """Only where something behind it tells so."""
    for side, drawn in (("mine", floats(1, 2, 3)), ("golden", floats(4, 5, 6))):
        rest = [("D/aten_relu_default-op2", {IN: X, OUT: X})] if is_followed else []
        write_dump(tmp_path / side, [("D/aten_uniform__default-op1", {IN: X, OUT: drawn}), *rest])
    found = compare_dumps(tmp_path / "mine", tmp_path / "golden")
    assert found.is_agreeing == is_followed and found.idle_draws == is_followed
    assert found.first_wrong is None and (found.first_differing is None) == is_followed


def test_what_was_written_down_or_in_part_is_shown(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    msdump = pytest.importorskip("msdump")
    from tests.frontends.torch.eager.test_watch import config

    net = torch.nn.Linear(2, 2)
    with msdump.watch(net, config(tmp_path)):
        net(torch.ones(1, 2))
        made = torch.tensor([7.0, 8.0])
        made.view(2, 1)
        padded = torch.empty(3)
        padded[:2].copy_(made)
        padded.sum()
    rows = {(row.tensor.op_type, row.tensor.io): row for row in tensor_statistics(tmp_path).rows}
    assert rows["aten_lift_fresh_default", "output"].numbers.max == 8
    assert rows["aten_empty_memory_format", "output"].is_unset and rows["aten_copy__default", "input"].is_unset is False
    assert not rows["aten_copy__default", "output"].is_unset and not rows["aten_sum_default", "input"].is_unset
