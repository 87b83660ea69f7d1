"""A dynamic loss scale starts too large, so that the first step is skipped; in the second the logarithm of a
negative number makes the loss NaN."""

import sys

import mindspore as ms
import numpy as np
from mindspore import nn, ops

ANSWER = {
    "kind": "MindSpore, graph mode",
    "entry": "mindspore",
    "ask": "nan {faulty}",
    "operator": "Log",
    "step": 1,
    "wants": "the logarithm in the forward pass of step 1; step 0, whose gradient was scaled too far, was skipped",
}

FAULT = sys.argv[1] == "faulty"


class Loss(nn.Cell):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def construct(self, x, y):
        rate = self.net(x).astype(ms.float32).abs() + 0.5
        return (rate - ops.log(y) * rate).mean()  # fault


ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
ms.set_seed(0)
net = nn.Dense(4, 3).to_float(ms.float16)
scale = nn.DynamicLossScaleUpdateCell(loss_scale_value=2**24, scale_factor=2**16, scale_window=100)
step = nn.TrainOneStepWithLossScaleCell(Loss(net), nn.SGD(net.trainable_params(), 0.01), scale_sense=scale)
step.set_train()
rng = np.random.default_rng(0)
for number in range(3):
    x = 40 * rng.standard_normal((8, 4)).astype(np.float32)
    y = rng.random((8, 3), dtype=np.float32) + 1
    if FAULT and number == 1:
        y[0, 0] = -1
    step(ms.Tensor(x), ms.Tensor(y))
