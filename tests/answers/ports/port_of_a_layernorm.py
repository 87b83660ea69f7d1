"""A head was ported from PyTorch; small features show that its layer norm keeps an epsilon of its own."""

import sys

import numpy as np

ANSWER = {
    "kind": "ports to MindSpore",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "operator": "LayerNorm",
    "step": 0,
    "wants": "the layer norm, its line: another epsilon; its third output is another quantity in the two frameworks",
}

FAULT = sys.argv[1] == "faulty"

rng = np.random.default_rng(0)
batches = [0.01 * rng.standard_normal((4, 16), dtype=np.float32) for _ in range(4)]
weight = rng.standard_normal((3, 16), dtype=np.float32)

if sys.argv[1] == "golden":
    import torch

    class Head(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = torch.nn.LayerNorm(16, eps=1e-5)
            self.out = torch.nn.Linear(16, 3, bias=False)

        def forward(self, x):
            return self.out(self.norm(x)).square().mean()

    head = Head()
    head.out.weight.data = torch.from_numpy(weight)
    for x in batches:
        head.zero_grad()
        head(torch.from_numpy(x)).backward()
else:
    import mindspore as ms
    from mindspore import nn

    class Head(nn.Cell):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm((16,), epsilon=1e-3 if FAULT else 1e-5)
            self.out = nn.Dense(16, 3, weight_init=ms.Tensor(weight), has_bias=False)

        def construct(self, x):
            return self.out(self.norm(x)).square().mean()  # fault

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    head = Head()
    step = ms.value_and_grad(head, None, head.trainable_params())
    for x in batches:
        step(ms.Tensor(x))
