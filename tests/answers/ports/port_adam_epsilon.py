"""A port has Adam with an epsilon of its own."""

import sys

import numpy as np

ANSWER = {
    "kind": "ports to MindSpore",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "operator": "optimizer-",
    "step": 0,
    "wants": "the update of the first step, its line; the gradients agree",
}

FAULT = sys.argv[1] == "faulty"

rng = np.random.default_rng(0)
weight, bias = rng.standard_normal((4, 6), dtype=np.float32), rng.standard_normal(4, dtype=np.float32)
batches = [
    (rng.standard_normal((5, 6), dtype=np.float32), rng.standard_normal((5, 4), dtype=np.float32)) for _ in range(4)
]

if sys.argv[1] == "golden":
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(6, 4)

        def forward(self, x, y):
            return (self.fc(x) - y).square().mean()

    net = Net()
    net.fc.weight.data, net.fc.bias.data = torch.from_numpy(weight), torch.from_numpy(bias)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1, eps=1e-8, foreach=False)
    for x, y in batches:
        loss = net(torch.from_numpy(x), torch.from_numpy(y))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
else:
    import mindspore as ms
    from mindspore import nn

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc = nn.Dense(6, 4, weight_init=ms.Tensor(weight), bias_init=ms.Tensor(bias))

        def construct(self, x, y):
            return (self.fc(x) - y).square().mean()

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    net = Net()
    optimizer = nn.Adam(net.trainable_params(), 0.1, eps=1e-2 if FAULT else 1e-8)
    step = nn.TrainOneStepCell(net, optimizer).set_train()
    for x, y in batches:
        step(ms.Tensor(x), ms.Tensor(y))  # fault
