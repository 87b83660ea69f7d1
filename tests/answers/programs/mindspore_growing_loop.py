"""A loop over a tensor in graph mode raises a matrix to a power, and overflows where its gain is above 1."""

import sys

import mindspore as ms
import numpy as np
from mindspore import nn, ops

ANSWER = {
    "kind": "MindSpore, graph mode",
    "entry": "mindspore",
    "ask": "nan {faulty}",
    "operator": "Mul",
    "wants": "the multiplication in the body of the loop, its line",
}

FAULT = sys.argv[1] == "faulty"


class Power(nn.Cell):
    def construct(self, x, steps):
        i = ms.Tensor(0, ms.int32)
        while i < steps:
            x = x * 1e6  # fault
            i = i + 1
        return ops.tanh(x - x.mean())


ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
x = ms.Tensor(np.ones((2, 3), np.float32))
Power()(x, ms.Tensor(8 if FAULT else 3, ms.int32))
