"""A function compiled with @jit, called from ordinary Python; the training step is compiled as well."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, jit, nn, ops

ms.set_seed(1)
rng = np.random.default_rng(1)
inputs = Tensor(rng.standard_normal((32, 8)).astype(np.float32))
labels = Tensor((inputs.asnumpy().sum(axis=1, keepdims=True) > 0).astype(np.float32))

network = nn.SequentialCell(nn.Dense(8, 16), nn.Tanh(), nn.Dense(16, 1))
loss_of = nn.BCEWithLogitsLoss()
optimizer = nn.Adam(network.trainable_params(), learning_rate=0.02)


@jit
def scale(value, factor):
    return ops.tanh(value) * factor


def forward(value, target):
    return loss_of(network(value), target)


gradients = ms.value_and_grad(forward, None, optimizer.parameters)


@jit
def train_step(value, target):
    loss, grads = gradients(value, target)
    optimizer(grads)
    return loss


scaled = scale(inputs, 2.0)
assert np.allclose(scaled.asnumpy(), 2 * np.tanh(inputs.asnumpy()), atol=1e-5)
losses = [float(train_step(scaled, labels)) for _ in range(15)]
