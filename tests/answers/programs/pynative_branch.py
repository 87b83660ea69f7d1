"""A check is printed in the first step alone; in the third the logarithm of a negative target makes NaN."""

import sys

import mindspore as ms
import numpy as np
from mindspore import nn, ops

ANSWER = {
    "kind": "MindSpore, PyNative",
    "entry": "pynative",
    "ask": "nan {faulty}",
    "operator": "Log",
    "step": 2,
    "wants": "the logarithm of step 2, its line; the check of step 0 shifts no name",
}

FAULT = sys.argv[1] == "faulty"


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.out = nn.Dense(4, 2)
        self.calls = 0

    def construct(self, x, target):
        y = self.out(x)
        if self.calls == 0:
            print("smallest target:", ops.log(target + 5).min())
        self.calls += 1
        return (y - ops.log(target)).square().mean()  # fault


ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
ms.set_seed(0)
net = Net()
optimizer = nn.SGD(net.trainable_params(), 0.1)
gradient = ms.value_and_grad(net, None, optimizer.parameters)
rng = np.random.default_rng(0)
for step in range(4):
    target = rng.random((5, 2), dtype=np.float32) + 0.1
    if FAULT and step == 2:
        target[0, 0] = -1
    loss, grads = gradient(ms.Tensor(rng.random((5, 4), dtype=np.float32)), ms.Tensor(target))
    optimizer(grads)
