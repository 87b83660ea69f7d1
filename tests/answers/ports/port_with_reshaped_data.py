"""Pictures in the order NHWC were reshaped to NCHW in the port where they should have been transposed."""

import sys

import numpy as np

ANSWER = {
    "kind": "ports to MindSpore",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "operator": "Conv2D",
    "says": ["x"],
    "step": 0,
    "wants": "the input of the first convolution differs: the runs had different data",
}

FAULT = sys.argv[1] == "faulty"

rng = np.random.default_rng(0)
batches = [
    np.ascontiguousarray(pictures.reshape(2, 3, 6, 6) if FAULT else pictures.transpose(0, 3, 1, 2))
    for pictures in rng.standard_normal((4, 2, 6, 6, 3), dtype=np.float32)
]
weight = rng.standard_normal((4, 3, 3, 3), dtype=np.float32)

if sys.argv[1] == "golden":
    import torch

    class Stem(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 4, 3, padding=1, bias=False)

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
            self.conv = nn.Conv2d(3, 4, 3, pad_mode="pad", padding=1, weight_init=ms.Tensor(weight), has_bias=False)

        def construct(self, x):
            return ops.relu(self.conv(x)).square().mean()  # fault

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    stem = Stem()
    step = ms.value_and_grad(stem, None, stem.trainable_params())
    for x in batches:
        step(ms.Tensor(x))
