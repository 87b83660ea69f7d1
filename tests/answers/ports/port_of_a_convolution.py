"""A convolution of stride 2 was ported with the padding "same", which pads the other side than PyTorch's
padding=1."""

import sys

import numpy as np

ANSWER = {
    "kind": "ports to MindSpore",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "operator": "Conv2D",
    "says": ["pad"],
    "step": 0,
    "wants": "the convolution, its line, and that its padding differs",
}

FAULT = sys.argv[1] == "faulty"

rng = np.random.default_rng(0)
batches = rng.standard_normal((4, 1, 3, 8, 8), dtype=np.float32)
weight = rng.standard_normal((4, 3, 3, 3), dtype=np.float32)

if sys.argv[1] == "golden":
    import torch

    class Stem(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 4, 3, stride=2, padding=1, bias=False)

        def forward(self, x):
            return torch.relu(self.conv(x)).square().mean()

    stem = Stem()
    stem.conv.weight.data = torch.from_numpy(weight)
    for x in batches:
        stem.zero_grad()
        stem(torch.from_numpy(x)).backward()
else:
    import mindspore as ms
    from mindspore import nn, ops

    class Stem(nn.Cell):
        def __init__(self):
            super().__init__()
            how = {"pad_mode": "same"} if FAULT else {"pad_mode": "pad", "padding": 1}
            self.conv = nn.Conv2d(3, 4, 3, stride=2, weight_init=ms.Tensor(weight), has_bias=False, **how)

        def construct(self, x):
            return ops.relu(self.conv(x)).square().mean()  # fault

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    stem = Stem()
    step = ms.value_and_grad(stem, None, stem.trainable_params())
    for x in batches:
        step(ms.Tensor(x))
