"""Which Inf was meant: masks before a softmax, constants; and which was not. From tensors and from statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.analysis import NonFiniteReport, find_non_finite, write_statistic_files
from msdump.cli.main import main
from tests.analysis.small_dump import floats, write_dump

IN, MASK, OUT = ("input", 0), ("input", 1), ("output", 0)
FINE, MORE = floats(1, 2, 3), floats(0.5, 0.25, 0.25)
MASKED, ROW, BAD = floats(1, -np.inf, 3), floats(-np.inf, -np.inf, -np.inf), floats(np.nan, 1, 2)
HUGE = floats(np.inf, 2, 3)
Operators = Sequence[tuple[str, Any]]
Search = Callable[[Operators], NonFiniteReport]


@pytest.fixture(params=["tensors", "statistics"])
def search(request: pytest.FixtureRequest, tmp_path: Path) -> Search:
    def find(operators: Operators) -> NonFiniteReport:
        dump = write_dump(tmp_path / "dump", operators)
        if request.param == "tensors":
            return find_non_finite(dump)
        write_statistic_files(dump, tmp_path / "statistics")
        return find_non_finite(tmp_path / "statistics")

    return find


def names(operators: Sequence[Any]) -> list[str]:
    return [operator.op_name for operator in operators]


def attention(mask: Any, weights: Any, op_type: str = "aten_masked_fill_Scalar") -> Operators:
    """Scores, a mask of -Inf, a view of it, and the softmax that reads it."""
    return [
        ("D/MatMul-op1", {IN: FINE, OUT: FINE}),
        (f"D/{op_type}-op2", {IN: FINE, MASK: np.array([False, True, False]), OUT: mask}),
        ("D/View-op3", {IN: mask, OUT: mask.reshape(3, 1)}),
        ("D/Softmax-op4", {IN: mask.reshape(3, 1), OUT: weights}),
    ]


def test_a_mask_is_benign_and_the_square_root_behind_it_is_named(search: Search) -> None:
    report = search(
        [*attention(MASKED, MORE), ("D/Sqrt-op5", {IN: MORE, OUT: BAD}), ("D/Mul-op6", {IN: BAD, OUT: BAD})]
    )
    assert report.first_inf is None and report.first_nan is report.first is not None
    assert report.first_nan.operator.op_name == "Sqrt-op5" and report.first_nan.how == "made"
    assert names(report.first_nan.infected) == ["Mul-op6"]
    assert not report.first_nan.also_made and not report.first_nan.stopped and not report.first_nan.sources
    (benign,) = report.benign
    assert (benign.operator.op_name, benign.how) == ("aten_masked_fill_Scalar-op2", "constant")
    assert names(benign.stops) == ["Softmax-op4"]


def test_a_row_that_is_masked_as_a_whole_becomes_a_nan_of_that_mask(search: Search) -> None:
    report = search(attention(ROW, floats(np.nan, np.nan, np.nan)))
    assert report.first_nan is not None and report.first_nan.operator.op_name == "Softmax-op4"
    assert names(report.first_nan.sources) == ["aten_masked_fill_Scalar-op2"]
    assert report.first_inf is None and not report.benign


@pytest.mark.parametrize("stop", ["Softmax", "Select", "aten_where_self", "ReduceMax", "aten_clamp_default", "Maximum"])
def test_an_inf_of_a_computation_is_benign_where_all_readers_stop_it(search: Search, stop: str) -> None:
    report = search([("D/Log-op1", {IN: FINE, OUT: MASKED}), (f"D/{stop}-op2", {IN: MASKED, OUT: MORE})])
    assert report.first is None
    assert [(benign.operator.op_name, benign.how) for benign in report.benign] == [("Log-op1", "made")]


def test_an_inf_that_gets_lost_or_is_read_by_another_too_is_unexpected(search: Search) -> None:
    overflow = ("D/Exp-op1", {IN: FINE, OUT: HUGE})
    report = search([overflow, ("D/Div-op2", {IN: HUGE, OUT: MORE}), ("D/Softmax-op3", {IN: HUGE, OUT: MORE})])
    assert report.first_inf is not None and report.first_inf.operator.op_name == "Exp-op1" and not report.benign
    assert names(report.first_inf.stopped) == ["Div-op2", "Softmax-op3"]
    assert report.first_nan is None


def test_an_inf_that_nobody_reads_or_only_looks_at_is_unexpected(search: Search) -> None:
    report = search(
        [("D/Exp-op1", {IN: FINE, OUT: HUGE}), ("D/IsFinite-op2", {IN: HUGE, OUT: np.array([False, True])})]
    )
    assert report.first_inf is not None and report.first_inf.operator.op_name == "Exp-op1"


def test_a_nan_made_of_an_overflow_names_both(search: Search) -> None:
    report = search([("D/Exp-op1", {IN: FINE, OUT: HUGE}), ("D/Sub-op2", {IN: HUGE, MASK: HUGE, OUT: BAD})])
    assert report.first_inf is report.first and report.first is not None
    assert report.first_inf.operator.op_name == "Exp-op1"
    assert report.first_nan is not None and report.first_nan.operator.op_name == "Sub-op2"
    assert report.first_nan.how == "made" and names(report.first_nan.sources) == ["Exp-op1"]


def test_a_mask_that_came_in_is_benign_where_it_is_stopped(search: Search) -> None:
    report = search([("D/Add-op1", {IN: FINE, MASK: MASKED, OUT: MASKED}), ("D/Softmax-op2", {IN: MASKED, OUT: MORE})])
    assert report.first is None and [benign.how for benign in report.benign] == ["came in"]


def test_a_value_that_came_in_and_spreads_is_unexpected(search: Search) -> None:
    report = search([("D/Add-op1", {IN: FINE, MASK: HUGE, OUT: HUGE}), ("D/Mul-op2", {IN: HUGE, OUT: HUGE})])
    assert report.first_inf is not None and report.first_inf.how == "came in"
    assert report.first_inf.tensors[0].slot.number == 1


def test_outputs_alone_do_not_make_a_view_of_a_mask_a_culprit(search: Search) -> None:
    report = search([(name, {OUT: tensors[OUT]}) for name, tensors in attention(MASKED, MORE)])
    assert report.first is None


@settings(max_examples=25, deadline=None)
@given(heads=st.lists(st.booleans(), min_size=1, max_size=4))
def test_masks_are_benign_in_every_layer(heads: list[bool], tmp_path_factory: pytest.TempPathFactory) -> None:
    """True: the weights of this layer are spoiled by something else."""
    operators: list[tuple[str, Any]] = []
    for layer, is_bad in enumerate(heads):
        for name, tensors in attention(MASKED, MORE):
            operators.append((f"{name}{layer}", tensors))
        operators.append((f"D/Sqrt-op5{layer}", {IN: MORE, OUT: BAD if is_bad else MORE}))
    report = find_non_finite(write_dump(tmp_path_factory.mktemp("layers"), operators))
    assert report.first_inf is None and len(report.benign) == len(heads)
    if True not in heads:
        assert report.first is None
    else:
        assert report.first is not None and report.first.operator.op_name == f"Sqrt-op5{heads.index(True)}"


def test_command_answers_two_questions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nan", str(write_dump(tmp_path / "mask", attention(MASKED, MORE)))]) == 0
    text = capsys.readouterr().out
    assert text.startswith(
        "finite: 9 tensors of 1 iteration hold no NaN and no Inf that was not meant.\nbenign Inf: D/aten_"
    )
    assert "from a constant; stopped by D/Softmax-op4" in text
    bad = [*attention(MASKED, MORE), ("D/Exp-op5", {IN: MORE, OUT: HUGE}), ("D/Sub-op6", {IN: HUGE, OUT: BAD})]
    assert main(["nan", str(write_dump(tmp_path / "bad", bad))]) == 1
    text = capsys.readouterr().out
    # The cause first, then what became of it.
    assert text.startswith("first unexpected Inf, made out of finite inputs: D/Exp-op5 (Exp)")
    assert "\nfirst NaN, made out of Inf: D/Sub-op6 (Sub)" in text
    assert "  made of the Inf of: 1 operator\n    D/Exp-op5\n" in text
