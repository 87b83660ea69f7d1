"""mindspore.boost adds up gradients and lets the optimizer work now and then."""

from __future__ import annotations

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.mindspore import Tensor, boost, nn


@pytest.mark.parametrize("every", [1, 2, 3])
def test_the_weights_change_with_the_mean_of_several_gradients(every: int) -> None:
    network = nn.Dense(3, 1)
    optimizer = nn.SGD(network.trainable_params(), 0.5)
    accumulate = boost.GradientAccumulation(every, optimizer)
    gradients = ms.value_and_grad(lambda x: network(x).sum(), None, optimizer.parameters)
    before = network.weight.asnumpy().copy()
    inputs = np.random.default_rng(0).standard_normal((6, 2, 3)).astype(np.float32)
    for count, x in enumerate(inputs, 1):
        loss, grads = gradients(Tensor(x))
        assert accumulate(loss, grads).asnumpy() == loss.asnumpy()
        updates = count // every * every
        moved = 0.5 * inputs[:updates].sum(axis=(0, 1)) / every
        np.testing.assert_allclose(before - network.weight.asnumpy(), moved[None], rtol=1e-4, atol=1e-5)


def test_a_compiled_step_updates_now_and_then() -> None:
    """In a construct the number of the step is a tensor, so that the graph has both branches."""

    class Step(nn.TrainOneStepCell):
        def __init__(self, network: nn.Cell, optimizer: nn.Optimizer) -> None:
            super().__init__(network, optimizer)
            self.accumulate = boost.GradientAccumulation(2, optimizer)

        def construct(self, *inputs: Tensor) -> Tensor:
            loss = self.network(*inputs)
            grads = self.grad(self.network, self.weights)(*inputs, ms.ops.fill(loss.dtype, loss.shape, self.sens))
            return self.accumulate(loss, grads)

    network = nn.Dense(3, 1, has_bias=False)
    before = network.weight.asnumpy().copy()
    step = Step(nn.WithLossCell(network, nn.MSELoss()), nn.SGD(network.trainable_params(), 0.5))
    x, y = Tensor(np.ones((2, 3), np.float32)), Tensor(np.zeros((2, 1), np.float32))
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        step(x, y)
        np.testing.assert_array_equal(network.weight.asnumpy(), before)
        step(x, y)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    np.testing.assert_allclose(network.weight.asnumpy(), before - before.sum(), rtol=1e-5, atol=1e-6)


def test_what_is_not_there_says_so() -> None:
    with pytest.raises(AttributeError, match=r"'mindspore\.boost' has no attribute 'AutoBoost'"):
        _ = boost.AutoBoost
