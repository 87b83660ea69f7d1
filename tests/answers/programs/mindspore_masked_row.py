"""An attention in graph mode masks with -Inf, and one sentence of a batch is empty."""

import sys

import mindspore as ms
import numpy as np
from mindspore import nn, ops

ANSWER = {
    "kind": "MindSpore, graph mode",
    "entry": "mindspore",
    "ask": "nan {faulty}",
    "operator": "Softmax",
    "step": 1,
    "wants": "the softmax of a row that is masked as a whole, its line, step 1",
}

FAULT = sys.argv[1] == "faulty"


class Attention(nn.Cell):
    def __init__(self):
        super().__init__()
        self.project = nn.Dense(4, 12)

    def construct(self, x, mask):
        query, key, value = ops.split(self.project(x), 4, axis=-1)
        scores = ops.matmul(query, key.swapaxes(-1, -2))
        scores = ops.masked_fill(scores, mask, float("-inf"))
        weights = ops.softmax(scores, axis=-1)  # fault
        return ops.matmul(weights, value)


ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
ms.set_seed(0)
net = Attention()
rng = np.random.default_rng(0)
for step in range(2):
    lengths = np.array([3, 0 if FAULT and step == 1 else 2])
    mask = np.arange(3) >= lengths[:, None, None]
    net(
        ms.Tensor(rng.standard_normal((2, 3, 4)).astype(np.float32)), ms.Tensor(np.broadcast_to(mask, (2, 3, 3)).copy())
    )
