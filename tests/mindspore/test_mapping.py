"""`vmap`, `partial`, and functions of plain values of `mindspore.ops`."""

from __future__ import annotations

import numpy as np
import pytest

from msdump import mindspore as ms
from msdump.mindspore import nn, ops

X = ms.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
W = ms.Tensor(np.arange(3, dtype=np.float32) + 1)


def dot(x: ms.Tensor, w: ms.Tensor) -> ms.Tensor:
    return (x * w).sum()


@pytest.mark.parametrize("compile_", [lambda f: f, ms.jit])
def test_every_sample_is_one_call(compile_: object) -> None:
    mapped = compile_(ops.vmap(dot, in_axes=(0, None)))  # type: ignore[operator]
    np.testing.assert_allclose(mapped(X, W).asnumpy(), X.asnumpy() @ W.asnumpy())


def test_axes_of_arguments_and_results() -> None:
    outer = ops.vmap(ops.vmap(lambda a, b: a * b, (None, 0)), (0, None), 1)
    np.testing.assert_allclose(outer(W, W).asnumpy(), np.outer(W.asnumpy(), W.asnumpy()))
    both = ops.vmap(lambda pair: (pair[0] + 1, pair[1]), ((1, None),), (0, None))((X, W))
    assert both[0].shape == (3, 2) and both[1].shape == (3,)
    assert np.array_equal(both[0].asnumpy(), X.asnumpy().T + 1)


def test_gradients_per_sample() -> None:
    each = ops.vmap(ms.grad(lambda x, w: dot(x, w) ** 2, 1), in_axes=(0, None))(X, W)
    np.testing.assert_allclose(each.asnumpy(), 2 * (X.asnumpy() @ W.asnumpy())[:, None] * X.asnumpy(), rtol=1e-6)
    whole = ms.grad(lambda w: ops.vmap(dot, (0, None))(X, w).sum())(W)
    np.testing.assert_allclose(whole.asnumpy(), X.asnumpy().sum(0))


def test_axes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="must not be None"):
        ops.vmap(dot, None)(X, W)
    with pytest.raises(ValueError, match="must be equal"):
        ops.vmap(dot)(X, W)
    with pytest.raises(ValueError, match="expected 2 axes"):
        ops.vmap(dot, (0,))(X, W)


class Scaled(nn.Cell):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.w = ms.Parameter(ms.Tensor(np.full(3, factor, np.float32)), name="w")

    def construct(self, x: ms.Tensor, y: ms.Tensor) -> tuple[ms.Tensor, ms.Tensor]:
        return x * self.w, y + self.w


def test_a_list_of_cells_takes_a_sample_each(either_mode: int) -> None:
    """Ensembles of models: MindSpore 2.0.0 and 2.7.0 give the same."""
    cells = nn.CellList([Scaled(1), Scaled(2)])
    factors = np.array([[1], [2]], np.float32)
    product, total = ops.vmap(cells, in_axes=(0, None), out_axes=(0, 1))(X, W)
    np.testing.assert_array_equal(product.asnumpy(), X.asnumpy() * factors)
    np.testing.assert_array_equal(total.asnumpy(), (W.asnumpy() + factors).T)
    shared = ops.vmap(cells, in_axes=None)(W, W)
    np.testing.assert_array_equal(shared[0].asnumpy(), W.asnumpy() * factors)
    gradients = ms.grad(lambda x: ops.vmap(cells, (0, None))(x, W)[0].sum(), None, cells.trainable_params())(X)
    np.testing.assert_array_equal(np.stack([each.asnumpy() for each in gradients]), X.asnumpy())
    with pytest.raises(ValueError, match="each of the 2 cells, but got 3"):
        ops.vmap(cells, (1, None))(X, W)
    with pytest.raises(RuntimeError, match="two cells or more"):
        ops.vmap(nn.CellList([Scaled(1)]), None)


def test_arguments_given_before() -> None:
    for make in (ops.partial, ops.Partial()):
        assert float(make(dot, W)(W)) == 14.0


def test_plain_values() -> None:
    assert ops.scalar_to_tensor(3, ms.float32).dtype == ms.float32 and ops.is_tensor(X)
    assert ops.tuple_to_array((1, 2)).shape == (2,) and ops.tensor_sub(W, W).sum() == 0


def test_functions_of_known_values_run_at_compile_time() -> None:
    calls = []

    @ops.constexpr
    def double(size: int) -> int:
        calls.append(size)
        return 2 * size

    compiled = ms.jit(lambda x: x * double(x.shape[0]))
    assert np.array_equal(compiled(X).asnumpy(), X.asnumpy() * 4)
    compiled(X)
    assert calls == [2]


def test_classes_keep_what_their_constructors_take_and_nothing_else() -> None:
    assert ops.MatMul(transpose_b=True).attrs == {"transpose_a": False, "transpose_b": True}
    assert ops.Dropout(0.9).attrs == {"keep_prob": 0.9, "Seed0": 0, "Seed1": 0}
    assert ops.operations.SparseSoftmaxCrossEntropyWithLogits(True).attrs == {"is_grad": True}
    for plain in (ops.RealDiv, ops.Div, ops.Mod, ops.GeLU, ops.SoftmaxCrossEntropyWithLogits):
        assert plain().attrs == {}
