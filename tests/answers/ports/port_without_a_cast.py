"""A norm of a half-precision network was ported without the cast to float32: its squares leave the range of float16."""

import sys

import numpy as np

ANSWER = {
    "kind": "ports to MindSpore",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "operator": "Square",
    "says": ["float16 against float32"],
    "step": 0,
    "wants": "the square, its line: it computes in float16, where the first implementation computes in float32",
}

FAULT = sys.argv[1] == "faulty"

rng = np.random.default_rng(0)
weight = rng.standard_normal((8, 6), dtype=np.float32).astype(np.float16)
batches = [(200 * rng.standard_normal((5, 6), dtype=np.float32)).astype(np.float16) for _ in range(4)]

if sys.argv[1] == "golden":
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(6, 8, bias=False).half()

        def forward(self, x):
            hidden = self.fc(x)
            wide = hidden.float()
            normed = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
            return torch.tanh(normed).mean()

    net = Net()
    net.fc.weight.data = torch.from_numpy(weight)
    for x in batches:
        net.zero_grad()
        net(torch.from_numpy(x)).backward()
else:
    import mindspore as ms
    from mindspore import nn, ops

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc = nn.Dense(6, 8, weight_init=ms.Tensor(weight), has_bias=False, dtype=ms.float16)

        def construct(self, x):
            hidden = self.fc(x)
            wide = hidden if FAULT else hidden.astype(ms.float32)
            normed = wide * ops.rsqrt(ops.square(wide).mean(-1, keep_dims=True) + 1e-6)  # fault
            return ops.tanh(normed).mean()

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    net = Net()
    step = ms.value_and_grad(net, None, net.trainable_params())
    for x in batches:
        step(ms.Tensor(x))
