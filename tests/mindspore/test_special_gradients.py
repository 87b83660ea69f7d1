"""Gradients of incomplete gamma functions and of zeta, and numbers that MindSpore 2.7.0 gives for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msdump.mindspore as ms
import msdump.mindspore.numpy as mnp
from msdump.mindspore import Tensor, ops

torch = pytest.importorskip("torch")

ORDER, X, Q = ([0.5, 1.5, 3.0], [0.7, 2.0, 2.5], [1.5, 2.5, 4.0])


def of(values: Any) -> Tensor:
    return Tensor(np.array(values, np.float32))


@pytest.mark.parametrize(
    ("function", "first", "second"),
    [
        (ops.igamma, [-0.53133893, -0.27743345, -0.24711742], [0.33486480, 0.21596378, 0.25651553]),
        (ops.igammac, [0.53133893, 0.27743345, 0.24711742], [-0.33486480, -0.21596378, -0.25651553]),
    ],
)  # fmt: skip
def test_incomplete_gamma(either_mode: int, function: Any, first: list[float], second: list[float]) -> None:
    """Expected numbers: MindSpore 2.7.0 on a CPU."""
    gradients = ms.grad(lambda a, x: function(a, x), (0, 1))(of(ORDER), of(X))
    for gradient, expected in zip(gradients, (first, second), strict=True):
        np.testing.assert_allclose(gradient.asnumpy(), expected, rtol=3e-6)


def test_zeta(either_mode: int) -> None:
    """Expected numbers: MindSpore 2.7.0 on a CPU."""
    first, second = ms.grad(lambda x, q: ops.zeta(x, q), (0, 1))(of(Q), of(X))
    np.testing.assert_array_equal(first.asnumpy(), [0, 0, 0])
    np.testing.assert_allclose(second.asnumpy(), [-4.3543015, -0.31683472, -0.05229266], rtol=1e-5)


@given(order=st.floats(0.05, 20), x=st.floats(0.05, 20))
@settings(max_examples=60, deadline=None)
def test_the_order_against_small_steps(order: float, x: float) -> None:
    (gradient,) = ops.GradOperation(get_all=True)(lambda a: ops.igamma(a, Tensor(np.float64(x))))(
        Tensor(np.float64(order))
    )
    step = 1e-4 * min(order, 1)
    at = torch.tensor([order - step, order + step], dtype=torch.float64)
    below, above = torch.special.gammainc(at, torch.full_like(at, x)).tolist()
    assert float(gradient) == pytest.approx((above - below) / (2 * step), rel=1e-4, abs=1e-6)


def test_both_operands_broadcast(either_mode: int) -> None:
    first, second = ms.grad(lambda a, x: ops.igamma(a, x), (0, 1))(of([[0.5], [1.5]]), of(X))
    assert (first.shape, second.shape) == ((2, 1), (3,))
    each = [float(ms.grad(lambda a, y=y: ops.igamma(a, of(y)), 0)(of(0.5))) for y in X]
    np.testing.assert_allclose(float(first[0, 0]), sum(each), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_nanvar_is_float32(dtype: Any) -> None:
    x = Tensor(np.array([[1, np.nan, 3], [4, 5, np.nan]], dtype))
    for name in ("nanvar", "nanstd"):
        result = getattr(mnp, name)(x)
        assert result.dtype == ms.float32
        np.testing.assert_allclose(float(result), getattr(np, name)(x.asnumpy().astype(np.float64)), rtol=1e-3)
        assert getattr(mnp, name)(x, dtype=ms.float64).dtype == ms.float64
