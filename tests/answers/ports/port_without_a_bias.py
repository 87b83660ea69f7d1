"""A layer was ported without its bias."""

import sys

import numpy as np

ANSWER = {
    "kind": "ports to MindSpore",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "operator": "MatMul",
    "step": 0,
    "wants": "the product of the layer, its line: the other implementation adds a bias",
}

FAULT = sys.argv[1] == "faulty"

rng = np.random.default_rng(0)
batches = rng.standard_normal((4, 5, 6), dtype=np.float32)
weight, bias = rng.standard_normal((4, 6), dtype=np.float32), rng.standard_normal(4, dtype=np.float32)

if sys.argv[1] == "golden":
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(6, 4)

        def forward(self, x):
            return torch.tanh(self.fc(x)).square().mean()

    net = Net()
    net.fc.weight.data, net.fc.bias.data = torch.from_numpy(weight), torch.from_numpy(bias)
    for x in batches:
        net.zero_grad()
        net(torch.from_numpy(x)).backward()
else:
    import mindspore as ms
    from mindspore import nn, ops

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            how = {"has_bias": False} if FAULT else {"bias_init": ms.Tensor(bias)}
            self.fc = nn.Dense(6, 4, weight_init=ms.Tensor(weight), **how)

        def construct(self, x):
            return ops.tanh(self.fc(x)).square().mean()  # fault

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    net = Net()
    step = ms.value_and_grad(net, None, net.trainable_params())
    for x in batches:
        step(ms.Tensor(x))
