"""A pooling was ported with the padding "same", which pads the other side."""

import sys

import numpy as np

ANSWER = {
    "kind": "ports to MindSpore",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "operator": "MaxPool",
    "says": ["pad"],
    "step": 0,
    "wants": "the pooling, its line, and that its padding differs",
}

FAULT = sys.argv[1] == "faulty"

rng = np.random.default_rng(0)
batches = rng.standard_normal((4, 1, 3, 8, 8), dtype=np.float32)

if sys.argv[1] == "golden":
    import torch

    class Stem(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.pool = torch.nn.MaxPool2d(3, stride=2, padding=1)

        def forward(self, x):
            return torch.tanh(self.pool(x)).square().mean()

    for x in batches:
        Stem()(torch.from_numpy(x).requires_grad_()).backward()
else:
    import mindspore as ms
    from mindspore import nn, ops

    class Stem(nn.Cell):
        def __init__(self):
            super().__init__()
            how = {"pad_mode": "same"} if FAULT else {"pad_mode": "pad", "padding": 1}
            self.pool = nn.MaxPool2d(3, stride=2, **how)

        def construct(self, x):
            return ops.tanh(self.pool(x)).square().mean()  # fault

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    stem = Stem()
    for x in batches:
        ms.grad(stem)(ms.Tensor(x))
