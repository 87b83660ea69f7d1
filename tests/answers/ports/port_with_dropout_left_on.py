"""A port is compared in evaluation, but its dropout still drops: the cell was left in training."""

import sys

import numpy as np

ANSWER = {
    "kind": "ports to MindSpore",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "operator": "Dropout",
    "step": 0,
    "wants": "the dropout, its line, which the evaluation of the first implementation has not",
}

FAULT = sys.argv[1] == "faulty"

rng = np.random.default_rng(0)
batches = rng.standard_normal((4, 5, 6), dtype=np.float32)
weight = rng.standard_normal((4, 6), dtype=np.float32)

if sys.argv[1] == "golden":
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.drop = torch.nn.Linear(6, 4, bias=False), torch.nn.Dropout(0.5)

        def forward(self, x):
            hidden = self.drop(torch.relu(self.fc(x)))
            return hidden.exp().sum(-1).mean()

    net = Net()
    net.fc.weight.data = torch.from_numpy(weight)
    net.eval()
    for x in batches:
        net.zero_grad()
        net(torch.from_numpy(x)).backward()
else:
    import mindspore as ms
    from mindspore import nn, ops

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc = nn.Dense(6, 4, weight_init=ms.Tensor(weight), has_bias=False)
            self.drop = nn.Dropout(p=0.5)

        def construct(self, x):
            hidden = self.drop(ops.relu(self.fc(x)))  # fault
            return ops.exp(hidden).sum(-1).mean()

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    net = Net().set_train(FAULT)
    step = ms.value_and_grad(net, None, net.trainable_params())
    for x in batches:
        step(ms.Tensor(x))
