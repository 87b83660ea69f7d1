"""A metric loss measures distances; in one step a pair is equal, and the gradient of the square root is infinite."""

import sys

import mindspore as ms
import numpy as np
from mindspore import nn, ops

ANSWER = {
    "kind": "MindSpore, graph mode",
    "entry": "mindspore",
    "ask": "nan {faulty}",
    "operator": "SqrtGrad",
    "step": 1,
    "wants": "the gradient of the square root at 0, with the line of the square root, step 1",
}

FAULT = sys.argv[1] == "faulty"


class Pairs(nn.Cell):
    def __init__(self):
        super().__init__()
        self.encode = nn.Dense(4, 3, has_bias=False)

    def construct(self, left, right):
        apart = ops.square(self.encode(left - right)).sum(-1)
        distance = ops.sqrt(apart)  # fault
        return distance.mean()


ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
ms.set_seed(0)
net = Pairs()
step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.1))
rng = np.random.default_rng(0)
for number in range(2):
    left, right = rng.standard_normal((2, 5, 4)).astype(np.float32)
    if FAULT and number == 1:
        right[2] = left[2]
    step(ms.Tensor(left), ms.Tensor(right))
