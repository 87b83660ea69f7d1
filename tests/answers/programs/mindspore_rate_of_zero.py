"""A schedule in graph mode ends at a learning rate of 0 after step 3."""

import sys

import mindspore as ms
import numpy as np
from mindspore import nn, ops

ANSWER = {
    "kind": "MindSpore, graph mode",
    "entry": "mindspore",
    "ask": "nan {faulty}",
    "operator": "second.bias",
    "step": 4,
    "says": ["stands still", "learning rate is 0"],
    "wants": "the parameters, which stand still since the learning rate is 0, the line of the step",
}

ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
ms.set_seed(3)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Dense(6, 8), nn.Dense(8, 2)

    def construct(self, x):
        return self.second(ops.relu(self.first(x)))


rate = 0.1 if sys.argv[1] != "faulty" else [0.1] * 4 + [0.0] * 6
net, loss_of = Net(), nn.MSELoss()
optimizer = nn.SGD(net.trainable_params(), rate)


def forward(x, y):
    return loss_of(net(x), y)


gradients_of = ms.value_and_grad(forward, None, optimizer.parameters)


@ms.jit
def step(x, y):
    loss, gradients = gradients_of(x, y)
    optimizer(gradients)  # fault
    return loss


for number in range(10):
    x = np.random.RandomState(number).randn(16, 6).astype(np.float32)
    step(ms.Tensor(x), ms.Tensor(x[:, :2]))
