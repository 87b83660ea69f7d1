"""Gradients where formulas divide by zero, where operands tie, at bounds: those of MindSpore 2.7 on a CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from msdump import mindspore as ms
from msdump.mindspore import Tensor, nn, ops

pytest.importorskip("torch")

NAN, INF = float("nan"), float("inf")
# Name -> function, operands, gradients of the sum of its results.
ROWS: dict[str, tuple[Callable[..., Any], Sequence[Any], Sequence[Any]]] = {
    "BCELoss": (
        lambda x, y: nn.BCELoss(reduction="sum")(x, y),
        ([0, 1, 0, 1, 0.5], [0, 1, 1, 0, 1]),
        ([0, 0, -1e12, 1e12, -2], [INF, -INF, INF, -INF, 0]),
    ),
    "BCEWithLogitsLoss": (
        lambda x, y: nn.BCEWithLogitsLoss(reduction="sum")(x, y),
        ([0, 0, 200, -200, 1, INF], [0, 1, 1, 0, 1, 0]),
        ([0.5, -0.5, 0, 0, -0.26894, 1], [0, 0, -200, 200, -1, -INF]),
    ),
    "maximum": (
        ops.maximum,
        ([1, 2, 3, NAN, 1, INF], [1, 1, 4, 1, NAN, INF]),
        ([0.5, 1, 0, 1, 1, 0.5], [0.5, 0, 1, 1, 1, 0.5]),
    ),
    "minimum": (
        ops.minimum,
        ([1, 2, 3, NAN, 1, INF], [1, 1, 4, 1, NAN, INF]),
        ([0.5, 0, 1, 1, 1, 0.5], [0.5, 1, 0, 1, 1, 0.5]),
    ),
    "maximum of a row and a number": (ops.maximum, ([1, 2, 3], [2]), ([0, 0.5, 1], [1.5])),
    "clamp": (lambda x: ops.clamp(x, 0.0, 2.0), ([-1, 0, 1, 2, 3],), ([0, 0.5, 1, 0.5, 0],)),
    "hardtanh": (ops.hardtanh, ([-2, -1, 0, 1, 2],), ([0, 0.5, 1, 0.5, 0],)),
    "leaky_relu": (ops.leaky_relu, ([-1, 0, 1],), ([0.2, 0.6, 1],)),
    "margin_ranking_loss": (
        ops.margin_ranking_loss, ([0, 1], [0, 1], [1, -1]), ([-0.25, 0.25], [0.25, -0.25], [0, 0])
    ),
    "relu": (ops.relu, ([-1, 0, 1, INF],), ([0, 0, 1, 1],)),
    "relu6": (ops.relu6, ([-1, 0, 3, 6, 7, NAN],), ([0, 0, 1, 1, 0, 0],)),
    "hardswish": (ops.hardswish, ([-3, 0, 3, -INF, INF],), ([-0.5, 0.5, 1.5, 0, 1],)),
    "hardsigmoid": (ops.hardsigmoid, ([-3, 0, 3, -INF, INF],), ([0, 1 / 6, 0, 0, 0],)),
    "softplus": (ops.softplus, ([0, 21, -INF, INF],), ([0.5, 1, 0, 1],)),
    "logsigmoid": (ops.logsigmoid, ([0, 100],), ([0.5, 0],)),
    "elu": (ops.elu, ([0, -1, 1, -INF, INF],), ([1, 0.36788, 1, 0, 1],)),
    "kl_div": (
        lambda x, y: ops.kl_div(x, y, "sum"), ([-1, 0, -2], [0, 1, 0.5]), ([0, -1, -0.5], [0, 0, 0])
    ),
    "the variance of equal numbers": (lambda x: x.var(), ([1, 1, 1],), ([0, 0, 0],)),
    "products with zeros": (ops.prod, ([2, 0, 4],), ([0, 8, 0],)),
    "products along an axis": (
        lambda x: ops.prod(x, 1), ([[1, 2, 3], [0, 5, 0]],), ([[6, 3, 2], [0, 0, 0]],)
    ),
    "max_pool2d of equal numbers": (lambda x: ops.max_pool2d(x, 2), ([[[[1, 1], [1, 1]]]],), ([[[[1, 0], [0, 0]]]],)),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_gradients_at_edges(name: str, either_mode: int) -> None:
    function, operands, expected = ROWS[name]
    tensors = [Tensor(np.array(each, np.float32)) for each in operands]
    gradients = ms.grad(function, tuple(range(len(tensors))))(*tensors)
    for gradient, row in zip(gradients if isinstance(gradients, tuple) else (gradients,), expected, strict=True):
        np.testing.assert_allclose(gradient.asnumpy(), np.array(row, np.float32), rtol=1e-4, atol=1e-6)


def test_what_is_not_finite_stays_in_its_part_of_a_mean() -> None:
    picture = np.ones((1, 1, 4, 4), np.float32)
    picture[0, 0, 0, 0], picture[0, 0, 3, 3] = NAN, INF
    result = ops.adaptive_avg_pool2d(Tensor(picture), 2).asnumpy()[0, 0]
    np.testing.assert_array_equal(result, [[NAN, 1], [1, INF]])


def test_a_variance_divides_by_its_elements() -> None:
    numbers = Tensor(np.array([[1, 2, 4], [0, 0, 3]], np.float32))
    for ddof in (0, 1, 2):
        np.testing.assert_allclose(ops.var(numbers, 1, ddof).asnumpy(), numbers.asnumpy().var(1, ddof=ddof), rtol=1e-6)
    assert float(ops.var(Tensor(np.array([1, 2, 3, 4], np.int32))).asnumpy()) == 1.25
