"""Decisions on values of tensors inside of a compiled network: a loop that stops by itself, and a branch."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(16)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Dense(4, 8, "he_uniform")
        self.repeat = nn.Dense(8, 8, "he_uniform")
        self.out = nn.Dense(8, 1, "he_uniform")

    def construct(self, x, limit):
        h = ops.tanh(self.hidden(x))
        count = ops.zeros((), ms.int32)
        while count < limit:
            h = ops.tanh(self.repeat(h)) + h
            count = count + 1
        if ops.ReduceMax()(ops.abs(h)) > 100.0:
            h = h * 0.1
        return self.out(h)


rng = np.random.default_rng(16)
data = Tensor(rng.standard_normal((16, 4)).astype(np.float32))
target = Tensor(data.asnumpy().sum(axis=1, keepdims=True).astype(np.float32))
network = Net()
optimizer = nn.Adam(network.trainable_params(), 0.02)
loss_of = nn.MSELoss()
step = ms.value_and_grad(lambda x, n, y: loss_of(network(x, n), y), None, optimizer.parameters)
losses = []
for number in range(15):
    loss, grads = step(data, Tensor(1 + number % 3, ms.int32), target)
    optimizer(grads)
    losses.append(float(loss))
