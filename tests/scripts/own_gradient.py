"""A Cell with a gradient of its own: a sign forward, the gradient of a clipped identity backward."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

ms.set_seed(32)


class Binarize(nn.Cell):
    def construct(self, x):
        return ops.sign(x)

    def bprop(self, x, out, dout):
        return (dout * (ops.abs(x) <= 1.0).astype(ms.float32),)


class BinaryNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Dense(6, 24, "xavier_uniform")
        self.binarize = Binarize()
        self.out = nn.Dense(24, 2, "xavier_uniform")

    def construct(self, x):
        return self.out(self.binarize(self.hidden(x)))


rng = np.random.default_rng(32)
data = Tensor(rng.standard_normal((48, 6)).astype(np.float32))
label = Tensor((data.asnumpy()[:, 0] + data.asnumpy()[:, 1] > 0).astype(np.int32))
network = BinaryNet()
loss_of = nn.CrossEntropyLoss()
optimizer = nn.Adam(network.trainable_params(), 0.03)
step = ms.value_and_grad(lambda x, y: loss_of(network(x), y), None, optimizer.parameters)
before = network.hidden.weight.asnumpy().copy()
losses = []
for _ in range(20):
    loss, grads = step(data, label)
    optimizer(grads)
    losses.append(float(loss))
assert not np.array_equal(before, network.hidden.weight.asnumpy()), "the gradient went through the sign"
