"""A network was rewritten with the default slope of MindSpore's LeakyReLU."""

import sys

import mindspore as ms
import numpy as np
from mindspore import nn

ANSWER = {
    "kind": "ports that differ",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "operator": "LeakyReLU",
    "says": ["0.2"],
    "never": ["weights or data"],
    "wants": "the product of the leaky ReLU, its line, and that its constant is 0.2 against 0.01",
}

FAULT = sys.argv[1] == "faulty"


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Dense(4, 8), nn.Dense(8, 2)
        self.act = nn.LeakyReLU() if FAULT else nn.LeakyReLU(alpha=0.01)

    def construct(self, x):
        hidden = self.act(self.inner(x))  # fault
        return self.outer(hidden)


ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
ms.set_seed(0)
rng = np.random.default_rng(0)
Net()(ms.Tensor(rng.standard_normal((5, 4)).astype(np.float32)))
