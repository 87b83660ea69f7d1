"""An attention was ported with its scores divided by the size of a head in place of its root."""

import sys

import numpy as np

ANSWER = {
    "kind": "ports to MindSpore",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "operator": "Div",
    "step": 0,
    "wants": "the division, its line: it has another divisor",
}

FAULT = sys.argv[1] == "faulty"

rng = np.random.default_rng(0)
batches = rng.standard_normal((4, 3, 3, 4, 8), dtype=np.float32)

if sys.argv[1] == "golden":
    import torch

    class Attention(torch.nn.Module):
        def forward(self, q, k, v):
            scores = q @ k.transpose(-1, -2)
            return ((scores / 8**0.5).softmax(-1) @ v).square().mean()

    for batch in batches:
        Attention()(*torch.from_numpy(batch).requires_grad_()).backward()
else:
    import mindspore as ms
    from mindspore import nn, ops

    class Attention(nn.Cell):
        def construct(self, q, k, v):
            scores = ops.matmul(q, k.swapaxes(-1, -2))
            scores = scores / (8 if FAULT else 8**0.5)  # fault
            return ops.matmul(ops.softmax(scores, -1), v).square().mean()

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    net = Attention()
    for batch in batches:
        ms.grad(net, (0, 1, 2))(*map(ms.Tensor, batch))
