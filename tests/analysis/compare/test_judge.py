"""The verdict on a comparison, and that what was not compared is never said to agree."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from msdump.analysis import compare_dumps
from msdump.analysis.compare.judge import verdict_of
from msdump.analysis.compare.report import verdict_value
from msdump.analysis.compare.sentences import headline
from msdump.analysis.compare.verdict import MINE, Outcome, Reason, Verdict
from msdump.analysis.steps import Slot
from tests.analysis.small_dump import Tensors, floats, write_dump

IN, OTHER, OUT = ("input", 0), ("input", 1), ("output", 0)
RIGHT: Tensors = {IN: floats(1, 2, 3), OTHER: floats(4, 5, 6), OUT: floats(5, 7, 9)}


def judged(folder: Path, mine: Tensors, golden: Tensors) -> tuple[Verdict, list[str]]:
    sides = [
        write_dump(folder / name, [("Default/Mul-op1", one)]) for name, one in (("mine", mine), ("golden", golden))
    ]
    comparison = compare_dumps(*sides)
    return verdict_of(comparison), headline(comparison)


def test_two_equal_dumps(tmp_path: Path) -> None:
    verdict, lines = judged(tmp_path, RIGHT, RIGHT)
    assert verdict == Verdict(Outcome.AGREES) and lines == ["agree: all 1 pairs of operators and parameters agree."]


def test_an_operator_whose_inputs_were_all_compared(tmp_path: Path) -> None:
    verdict, lines = judged(tmp_path, {**RIGHT, OUT: floats(5, 7, 90)}, RIGHT)
    fault = verdict.fault
    assert verdict.outcome is Outcome.DIFFERS and fault is not None
    assert (fault.reason, fault.place.side, fault.place.operator.label) == (Reason.WRONG, MINE, "Default/Mul-op1")
    assert fault.unseen == () and lines[1].startswith("  its inputs agree (0), output 0 does not")


def test_an_input_that_one_side_does_not_have_is_not_said_to_agree(tmp_path: Path) -> None:
    golden = {slot: value for slot, value in RIGHT.items() if slot != OTHER}
    verdict, lines = judged(tmp_path, {**RIGHT, OUT: floats(5, 7, 90)}, golden)
    assert verdict.fault is not None and [one.slot for one in verdict.fault.unseen] == [Slot(1)]
    assert lines[1].startswith("  what was compared of its inputs agrees (0), not input 1; output 0 does not")
    value = verdict_value(verdict)
    assert value["outcome"] == "differs" and "'not_compared': ['input 1']" in str(value)


def test_the_verdict_tells_what_is_not_alike(tmp_path: Path) -> None:
    golden = {**RIGHT, OUT: np.array([5, 7, 90], np.float16)}
    verdict, _ = judged(tmp_path, RIGHT, golden)
    assert "'evidence': ['dtype of output 0: float32 against float16']" in str(verdict_value(verdict))


def test_a_difference_is_right_whose_terms_are_further_off(tmp_path: Path) -> None:
    """What the terms leave is small: the same error is a large one of it, and of what is made of it."""
    rng = np.random.default_rng(0)
    x = 1 + rng.random(64).astype(np.float32)
    left = np.float32(1e-4) * (1 + rng.random(64).astype(np.float32))
    sides = []
    for name, error in (("mine", np.float32(3e-5) * rng.standard_normal(64).astype(np.float32)), ("golden", 0)):
        y = (x + left + error).astype(np.float32)
        operators: list[tuple[str, Tensors]] = [
            ("Default/Sub-op1", {IN: y, OTHER: x, OUT: y - x}),
            ("Default/Abs-op2", {IN: y - x, OUT: np.abs(y - x)}),
        ]
        sides.append(write_dump(tmp_path / name, operators))
    assert verdict_of(compare_dumps(*sides)).outcome is Outcome.AGREES


def test_numbers_that_have_come_by_a_half_precision_have_its_bound_and_the_answer_says_so(tmp_path: Path) -> None:
    x = np.linspace(1, 2, 64, dtype=np.float32) + np.float32(1e-4)
    half = x.astype(np.float16)
    mine: list[tuple[str, Tensors]] = [
        ("Default/Cast-op1", {IN: x, OUT: half}),
        ("Default/Mul-op2", {IN: half, OUT: half.astype(np.float32) * 3}),
        ("Default/Neg-op3", {IN: half.astype(np.float32) * 3, OUT: half.astype(np.float32) * -3}),
    ]
    golden: list[tuple[str, Tensors]] = [
        ("Default/Cast-op1", {IN: x, OUT: x}),
        ("Default/Mul-op2", {IN: x, OUT: x * 3}),
        ("Default/Neg-op3", {IN: x * 3, OUT: x * -3}),
    ]
    comparison = compare_dumps(write_dump(tmp_path / "mine", mine), write_dump(tmp_path / "golden", golden))
    assert verdict_of(comparison).outcome is Outcome.AGREES
    assert comparison.notes == (
        "numbers that a run has computed in float16 were compared within its bounds, in float32 too",
    )


def test_a_damaged_file_makes_it_incomplete(tmp_path: Path) -> None:
    sides = [write_dump(tmp_path / name, [("Default/Mul-op1", RIGHT)]) for name in ("mine", "golden")]
    next(sides[0].rglob("*.input.1.*")).write_bytes(b"\x93NUMPY")
    comparison = compare_dumps(*sides)
    assert verdict_of(comparison) == Verdict(Outcome.INCOMPLETE) and headline(comparison)[0].startswith("incomplete: ")
