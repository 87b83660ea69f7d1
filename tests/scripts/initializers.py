"""Weights from initializers by name, by object and by hand, in a network that then trains."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn
from mindspore.common.initializer import (
    Constant,
    HeUniform,
    Normal,
    One,
    TruncatedNormal,
    XavierUniform,
    Zero,
    initializer,
)

ms.set_seed(8)
made = {
    "normal": initializer(Normal(0.02), [64, 64], ms.float32),
    "truncated": initializer(TruncatedNormal(0.1), [64, 64], ms.float32),
    "xavier": initializer(XavierUniform(), [64, 64], ms.float32),
    "he": initializer("he_uniform", [64, 64], ms.float32),
    "constant": initializer(Constant(0.5), [3], ms.float32),
    "ones": initializer(One(), [3], ms.float32),
    "zeros": initializer("zeros", [3], ms.float32),
}
assert abs(made["normal"].asnumpy().std() - 0.02) < 0.002
assert np.all(made["constant"].asnumpy() == 0.5) and np.all(made["ones"].asnumpy() == 1)
assert not made["zeros"].asnumpy().any()


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Dense(4, 16, weight_init=HeUniform(), bias_init=Zero())
        self.out = nn.Dense(16, 1, weight_init=Normal(0.1), bias_init="zeros")
        self.relu = nn.ReLU()

    def construct(self, x):
        return self.out(self.relu(self.hidden(x)))


rng = np.random.default_rng(8)
data = Tensor(rng.standard_normal((32, 4)).astype(np.float32))
target = Tensor(np.abs(data.asnumpy()).sum(axis=1, keepdims=True).astype(np.float32))
network = Net()
step = nn.TrainOneStepCell(nn.WithLossCell(network, nn.L1Loss()), nn.Adam(network.trainable_params(), 0.02))
step.set_train()
losses = [float(step(data, target)) for _ in range(20)]
