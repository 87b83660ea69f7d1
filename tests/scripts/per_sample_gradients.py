"""A gradient for each sample by vmap over grad, and an update with their clipped mean."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, ops, vmap

ms.set_seed(17)
rng = np.random.default_rng(17)
x = Tensor(rng.standard_normal((12, 3)).astype(np.float32))
y = Tensor((x.asnumpy() @ np.array([1.0, 2.0, -1.0], np.float32)).astype(np.float32))


def loss_of(weight, sample, target):
    return ops.square((weight * sample).sum() - target)


weight = Tensor(np.zeros(3, np.float32))
per_sample = vmap(ms.grad(loss_of, 0), in_axes=(None, 0, 0))
losses = []
for _ in range(25):
    gradients = per_sample(weight, x, y)
    assert gradients.shape == (12, 3)
    one = ms.grad(loss_of, 0)(weight, x[4], y[4])
    assert np.allclose(gradients.asnumpy()[4], one.asnumpy(), atol=1e-4)
    lengths = ops.sqrt(ops.square(gradients).sum(axis=1, keepdims=True))
    clipped = gradients * ops.minimum(2.0 / (lengths + 1e-6), 1.0)
    weight = weight - 0.2 * clipped.mean(axis=0)
    losses.append(float(ops.square((x * weight).sum(axis=1) - y).mean()))
