"""An attention was ported with the softmax over the queries in place of the keys."""

import sys

import numpy as np

ANSWER = {
    "kind": "ports to MindSpore",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "operator": "Softmax",
    "says": ["axis"],
    "step": 0,
    "wants": "the softmax, its line, and that its axis differs",
}

FAULT = sys.argv[1] == "faulty"

rng = np.random.default_rng(0)
batches = rng.standard_normal((4, 3, 3, 4, 8), dtype=np.float32)

if sys.argv[1] == "golden":
    import torch

    class Attention(torch.nn.Module):
        def forward(self, q, k, v):
            scores = q @ k.transpose(-1, -2) / 8**0.5
            return (scores.softmax(-1) @ v).square().mean()

    for batch in batches:
        Attention()(*torch.from_numpy(batch).requires_grad_()).backward()
else:
    import mindspore as ms
    from mindspore import nn, ops

    class Attention(nn.Cell):
        def construct(self, q, k, v):
            scores = ops.matmul(q, k.swapaxes(-1, -2)) / 8**0.5
            weights = ops.softmax(scores, -2 if FAULT else -1)  # fault
            return ops.matmul(weights, v).square().mean()

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    net = Attention()
    for batch in batches:
        ms.grad(net, (0, 1, 2))(*map(ms.Tensor, batch))
