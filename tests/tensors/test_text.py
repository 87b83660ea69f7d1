"""Numbers are written as MindSpore writes them. Expected texts: MindSpore 2.7 on a CPU."""

from __future__ import annotations

import numpy as np
import pytest

from msdump.tensors.arrays import Array
from msdump.tensors.text import scalar_text, values_text


@pytest.mark.parametrize(
    ("number", "text"),
    [(2.0, "2"), (1 / 3, "0.333333"), (1e-9, "1e-09"), (-1234567.0, "-1.23457e+06"), (np.nan, "nan"), (np.inf, "inf")],
)
def test_floats_without_axes_have_six_digits(number: float, text: str) -> None:
    assert scalar_text(np.array(number, np.float32)) == text


SHORT = np.array([[1.5, np.nan], [-np.inf, 1e30]])
TEXTS = [
    (np.array([1.0, -2.0], np.float32), "[ 1.00000000e+00, -2.00000000e+00]"),
    (np.array([1.0, 2.0], np.float16), "[ 1.0000e+00,  2.0000e+00]"),
    (SHORT, "[[ 1.50000000e+00,             nan],\n [           -inf,  1.00000000e+30]]"),
    (np.array([[True], [True]]), "[[ True],\n [ True]]"),
    (np.array([1, -1000, 5] + [7] * 2000), "[    1, -1000,     5 ...     7,     7,     7]"),
    (np.zeros((7, 2), int), "[[0, 0],\n [0, 0],\n [0, 0],\n ...\n [0, 0],\n [0, 0],\n [0, 0]]"),
    (np.zeros((2, 7), int), "[[0, 0, 0 ... 0, 0, 0],\n [0, 0, 0 ... 0, 0, 0]]"),
    (np.zeros((2, 2, 1), int), "[[[0],\n  [0]],\n [[0],\n  [0]]]"),
]


@pytest.mark.parametrize(("array", "text"), TEXTS)
def test_values(array: Array, text: str) -> None:
    assert values_text(array) == text
    assert values_text(array, " ") == text.replace(", ", " ").replace(",\n", "\n")


@pytest.mark.parametrize(("dtype", "per_line"), [(np.int64, 24), (np.float32, 12), (np.bool_, 12)])
def test_vectors_break_after_a_number_of_elements(dtype: type, per_line: int) -> None:
    lines = values_text(np.zeros(100, dtype)).split("\n")
    assert [line.count(",") for line in lines[:-1]] == [per_line] * (len(lines) - 1)
    assert all(line.startswith(" ") for line in lines[1:])


def test_a_tensor_without_elements_has_no_values() -> None:
    assert values_text(np.zeros(0)) == "[]"
