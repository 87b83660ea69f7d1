"""The mask of an attention was ported with the wrong sign: what should be left out is looked at alone."""

import sys

import numpy as np

ANSWER = {
    "kind": "ports to MindSpore",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "operator": "Add",
    "step": 0,
    "wants": "the addition of the mask, its line: the mask differs",
}

FAULT = sys.argv[1] == "faulty"

rng = np.random.default_rng(0)
batches = rng.standard_normal((4, 2, 3, 4, 8), dtype=np.float32)
mask = np.triu(np.full((4, 4), -1e4, np.float32), 1)

if sys.argv[1] == "golden":
    import torch

    class Scores(torch.nn.Module):
        def forward(self, q, k, mask):
            scores = q @ k.transpose(-1, -2)
            return (scores + mask).softmax(-1).square().mean()

    for batch in batches:
        Scores()(*torch.from_numpy(batch).requires_grad_(), torch.from_numpy(mask)).backward()
else:
    import mindspore as ms
    from mindspore import nn, ops

    class Scores(nn.Cell):
        def construct(self, q, k, mask):
            scores = ops.matmul(q, k.swapaxes(-1, -2))
            return ops.softmax(scores + mask, -1).square().mean()  # fault

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    net = Scores()
    for batch in batches:
        ms.grad(net, (0, 1))(*map(ms.Tensor, batch), ms.Tensor(-mask if FAULT else mask))
