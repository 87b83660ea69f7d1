"""A cell with a gradient of its own (bprop) divides by its input, which is 0 in one step."""

import sys

import mindspore as ms
import numpy as np
from mindspore import nn, ops

ANSWER = {
    "kind": "MindSpore, PyNative",
    "entry": "pynative",
    "ask": "nan {faulty}",
    "operator": "Div",
    "step": 1,
    "wants": "the division in the method bprop, its line, step 1",
}

FAULT = sys.argv[1] == "faulty"


class Signed(nn.Cell):
    def construct(self, x):
        return ops.sign(x) * ops.sqrt(ops.abs(x) + 1e-3)

    def bprop(self, x, out, dout):
        return (dout * ops.abs(out) / (2 * x),)  # fault


ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
ms.set_seed(0)
net = nn.SequentialCell(nn.Dense(3, 4, has_bias=False), Signed())
optimizer = nn.SGD(net.trainable_params(), 0.01)
gradient = ms.value_and_grad(lambda x: net(x).square().mean(), None, optimizer.parameters)
rng = np.random.default_rng(0)
for step in range(2):
    x = rng.standard_normal((4, 3)).astype(np.float32)
    if FAULT and step == 1:
        x[1] = 0
    loss, grads = gradient(ms.Tensor(x))
    optimizer(grads)
