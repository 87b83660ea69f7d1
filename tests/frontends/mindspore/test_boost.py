"""mindspore.boost adds up gradients and lets the optimizer work now and then."""

from __future__ import annotations

import msdump.mindspore as ms
import numpy as np
import pytest

from msdump.frontends.mindspore import Tensor, boost, nn


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


def test_what_is_not_there_says_so() -> None:
    with pytest.raises(AttributeError, match=r"'mindspore\.boost' has no attribute 'AutoBoost'"):
        _ = boost.AutoBoost
