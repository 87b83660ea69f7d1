"""One line beside every other, and sums along lines, against plain numpy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.mindspore.kernels import lines, threads
from msdump.mindspore.kernels.threads import apply_ufunc
from msdump.tensors.arrays import Array


@settings(max_examples=50, deadline=None)
@given(count=st.integers(0, 40), width=st.integers(1, 9), repeated=st.integers(1, 40))
def test_a_line_for_all_is_what_numpy_broadcasts(count: int, width: int, repeated: int) -> None:
    x, line = np.arange(count * width, dtype=np.float32).reshape(count, width), np.arange(width, dtype=np.float32)
    out = np.empty_like(x)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "_REPEATED", repeated)
        lines.apply_lines(np.subtract, [line, x], out)
    np.testing.assert_array_equal(out, line - x)


OPERANDS: list[Callable[[Array], Array]] = [
    lambda x: x[..., :1, :].copy(),
    lambda x: x[0, 0].copy(),
    lambda x: x[:1, :1].copy(),
    lambda x: x[0].copy(),
    lambda x: x[:, :, 0].copy()[:, :, np.newaxis],
    lambda x: x[:, :1].copy(),
    lambda x: x[::-1],
    lambda x: x[0, 0, :1].copy(),
    lambda x: np.float32(0.25) * np.ones((), np.float32),
]


@pytest.mark.parametrize("other", OPERANDS)
@pytest.mark.parametrize("ufunc", [np.add, np.maximum])
def test_large_operands_of_any_shape(
    monkeypatch: pytest.MonkeyPatch, ufunc: np.ufunc, other: Callable[..., Array]
) -> None:
    monkeypatch.setattr(threads, "SERIAL_SIZE", 1)
    monkeypatch.setattr(threads, "BLOCK", 1)
    x = np.random.default_rng(0).standard_normal((4, 5, 6)).astype(np.float32)
    for operands in ([x, other(x)], [other(x), x]):
        out = np.empty_like(x)
        apply_ufunc(ufunc, operands, out)
        np.testing.assert_array_equal(out, ufunc(*operands))


@pytest.mark.parametrize("width", [1, 7, 300, 5000])
def test_sums_and_products_along_lines(width: int) -> None:
    x, y = np.random.default_rng(0).standard_normal((2, 11, width)).astype(np.float32)
    np.testing.assert_allclose(lines.sums(x), x.astype(np.float64).sum(1), rtol=1e-5, atol=1e-4)
    product = (x.astype(np.float64) * y).sum(1)
    np.testing.assert_allclose(lines.dots(x, y), product, rtol=1e-5, atol=1e-4)
