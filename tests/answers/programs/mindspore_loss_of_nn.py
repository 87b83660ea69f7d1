"""The loss is one of mindspore.nn under WithLossCell, and squares a prediction that is too large."""

import sys

import mindspore as ms
import numpy as np
from mindspore import nn

ANSWER = {
    "kind": "MindSpore, graph mode",
    "entry": "mindspore",
    "ask": "nan {faulty}",
    "operator": "Square",
    "step": 1,
    "wants": "the square in the loss of the wrapper, with the script's line that calls the step",
}

FAULT = sys.argv[1] == "faulty"

ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
ms.set_seed(0)
net = nn.SequentialCell(nn.Dense(4, 6), nn.ReLU(), nn.Dense(6, 1))
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 1e-3))
step.set_train()
rng = np.random.default_rng(0)
for number in range(2):
    x = rng.standard_normal((5, 4)).astype(np.float32)
    y = x.sum(1, keepdims=True)
    if FAULT and number == 1:
        y[3] = 1e25
    step(ms.Tensor(x), ms.Tensor(y))  # fault
