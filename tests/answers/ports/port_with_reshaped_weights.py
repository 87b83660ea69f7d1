"""A weight in the order [in, out] was reshaped for the port where it should have been transposed."""

import sys

import numpy as np

ANSWER = {
    "kind": "ports to MindSpore",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "line": False,
    "says": ["fc.weight"],
    "step": 0,
    "wants": "the parameter fc.weight has other values: the runs had different weights",
}

FAULT = sys.argv[1] == "faulty"

rng = np.random.default_rng(0)
batches = rng.standard_normal((4, 5, 4), dtype=np.float32)
kernel = rng.standard_normal((4, 6), dtype=np.float32)
weight = np.ascontiguousarray(kernel.reshape(6, 4) if FAULT else kernel.T)

if sys.argv[1] == "golden":
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(4, 6)

        def forward(self, x):
            return torch.sigmoid(self.fc(x)).square().mean()

    net = Net()
    net.fc.weight.data, net.fc.bias.data = torch.from_numpy(weight), torch.zeros(6)
    for x in batches:
        net.zero_grad()
        net(torch.from_numpy(x)).backward()
else:
    import mindspore as ms
    from mindspore import nn, ops

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc = nn.Dense(4, 6, weight_init=ms.Tensor(weight), bias_init="zeros")

        def construct(self, x):
            return ops.sigmoid(self.fc(x)).square().mean()

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    net = Net()
    step = ms.value_and_grad(net, None, net.trainable_params())
    for x in batches:
        step(ms.Tensor(x))
