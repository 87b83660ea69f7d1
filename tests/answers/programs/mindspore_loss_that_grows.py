"""The learning rate of a training in graph mode is 60, and its loss rises in each step."""

import sys

import mindspore as ms
import numpy as np
from mindspore import nn, ops

ANSWER = {
    "kind": "MindSpore, graph mode",
    "entry": "mindspore",
    "ask": "nan {faulty}",
    "operator": "ReduceMean",
    "step": 1,
    "says": ["loss grows"],
    "wants": "the loss, which grows from step 1 on, its line",
}

ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
ms.set_seed(3)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Dense(6, 8), nn.Dense(8, 2)

    def construct(self, x):
        return self.second(ops.tanh(self.first(x)))


rate = 60.0 if sys.argv[1] == "faulty" else 0.05
net, loss_of = Net(), nn.MSELoss()
optimizer = nn.SGD(net.trainable_params(), rate)


def forward(x, y):
    return loss_of(net(x), y)  # fault


gradients_of = ms.value_and_grad(forward, None, optimizer.parameters)


@ms.jit
def step(x, y):
    loss, gradients = gradients_of(x, y)
    optimizer(gradients)
    return loss


for number in range(8):
    x = np.random.RandomState(number).randn(16, 6).astype(np.float32)
    step(ms.Tensor(x), ms.Tensor(x[:, :2]))
