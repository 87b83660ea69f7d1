"""Gradients of several small batches add up before one update."""

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

ms.set_seed(2)
rng = np.random.default_rng(2)
data = rng.standard_normal((40, 5)).astype(np.float32)
target = np.sin(data.sum(axis=1, keepdims=True)).astype(np.float32)

network = nn.SequentialCell(nn.Dense(5, 20), nn.ReLU(), nn.Dense(20, 1))
loss_of = nn.MSELoss()
optimizer = nn.Adam(network.trainable_params(), 0.02)
gradients = ms.value_and_grad(lambda x, y: loss_of(network(x), y), None, optimizer.parameters)


class Accumulator:
    def __init__(self, every):
        self.every, self.count = every, 0
        self.sums = [
            Parameter(ops.zeros_like(parameter), name=f"sum.{parameter.name}", requires_grad=False)
            for parameter in optimizer.parameters
        ]

    def __call__(self, grads):
        for total, grad in zip(self.sums, grads, strict=True):
            ops.assign_add(total, grad / self.every)
        self.count += 1
        if self.count % self.every == 0:
            optimizer(tuple(self.sums))
            for total in self.sums:
                ops.assign(total, ops.zeros_like(total))


accumulate = Accumulator(4)
losses = []
for _ in range(10):
    parts = []
    for start in range(0, 40, 10):
        loss, grads = gradients(Tensor(data[start : start + 10]), Tensor(target[start : start + 10]))
        accumulate(grads)
        parts.append(float(loss))
    losses.append(sum(parts) / len(parts))
