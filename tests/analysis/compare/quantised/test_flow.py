"""Where branches of a model meet, and what is left of an error there."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import msdump
from msdump.analysis.compare.quantised.float_form import FloatForm, float_form
from msdump.analysis.compare.quantised.flow import MeetingPoints, meeting_points
from msdump.analysis.compare.quantised.wires import ContentKey, array_key
from msdump.analysis.steps import read_steps
from tests.analysis.compare.quantised.layers import Array, Operators, dumped, tensors

X, A, B, C, D, E = (np.arange(4, dtype=np.float32) + 10 * number for number in range(6))
MASK = np.ones(9, np.float32)


def form_of(root: Path, operators: Operators) -> FloatForm:
    (step,) = read_steps(msdump.open(dumped(root, operators)))
    return float_form(step.operators, lambda operator: None)


def keyed(*pairs: tuple[Array, float]) -> dict[ContentKey, float]:
    return {array_key(array): error for array, error in pairs}


def test_in_a_chain_every_operator_is_one(tmp_path: Path) -> None:
    form = form_of(
        tmp_path,
        [("D/Exp-op0", tensors(X, output=A)), ("D/Exp-op1", tensors(A, output=B)), ("D/Exp-op2", tensors(B, output=C))],
    )
    points = meeting_points(form, keyed((A, 0.1), (B, 0.4), (C, 0.0)))
    assert points == MeetingPoints((0, 1, 2), (0.1, 0.4, 0.0))
    assert points.added_around(0) == 0.1 and points.added_around(1) == 0.4 - 0.1 and points.added_around(3) is None


def branches(root: Path) -> FloatForm:
    """a is read by b and by the sum behind it; a mask that carries no error is read by all."""
    return form_of(
        root,
        [
            ("D/Ones-op0", tensors(output=MASK)),
            ("D/Exp-op0", tensors(X, output=A)),
            ("D/Mul-op0", tensors(A, MASK, output=B)),
            ("D/Mul-op1", tensors(B, MASK, output=C)),
            ("D/Add-op0", tensors(A, C, output=D)),
            ("D/Mul-op2", tensors(D, MASK, output=E)),
        ],
    )


def test_behind_branches_what_is_left_counts(tmp_path: Path) -> None:
    points = meeting_points(branches(tmp_path), keyed((A, 0.01), (B, 0.5), (C, 0.5), (D, 0.03), (E, 0.1), (MASK, 0.0)))
    assert points.indices == (0, 1, 4, 5) and points.added_around(5) == 0.1 - 0.03
    assert points.added_around(2) == points.added_around(3) == points.added_around(4) == 0.03 - 0.01


def test_a_tensor_of_which_nothing_is_known_may_carry_any_error(tmp_path: Path) -> None:
    points = meeting_points(branches(tmp_path), keyed((A, 0.01), (B, 0.5), (C, 0.5), (D, 0.03)))
    assert points.indices == ()
    assert points.added_around(2) is None
