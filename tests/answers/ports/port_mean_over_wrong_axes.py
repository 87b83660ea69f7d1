"""A port in NCHW takes the mean over the axes that are the picture in NHWC."""

import sys

import numpy as np

ANSWER = {
    "kind": "ports to MindSpore",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "operator": "ReduceMean",
    "step": 0,
    "wants": "the mean, its line: its shape differs",
}

FAULT = sys.argv[1] == "faulty"

rng = np.random.default_rng(0)
batches = rng.standard_normal((4, 2, 3, 4, 4), dtype=np.float32)
weight = rng.standard_normal((3, 3), dtype=np.float32)

if sys.argv[1] == "golden":
    import torch

    class Head(torch.nn.Module):
        def forward(self, x, weight):
            return (torch.relu(x).mean((2, 3)) @ weight).square().mean()

    for x in batches:
        Head()(torch.from_numpy(x), torch.from_numpy(weight).requires_grad_()).backward()
else:
    import mindspore as ms
    from mindspore import nn, ops

    class Head(nn.Cell):
        def construct(self, x, weight):
            pooled = ops.relu(x).mean((1, 2) if FAULT else (2, 3))  # fault
            return ops.matmul(pooled[:, :3], weight).square().mean()

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    head = Head()
    for x in batches:
        ms.grad(head, 1)(ms.Tensor(x), ms.Tensor(weight))
