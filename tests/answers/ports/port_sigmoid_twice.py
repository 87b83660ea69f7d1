"""A port takes the sigmoid of its logits before a loss that takes it itself."""

import sys

import numpy as np

ANSWER = {
    "kind": "ports to MindSpore",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "operator": "Sigmoid",
    "step": 0,
    "wants": "the sigmoid, its line, which the first implementation has not before the loss",
}

FAULT = sys.argv[1] == "faulty"

rng = np.random.default_rng(0)
batches = [
    (rng.standard_normal((6, 4), dtype=np.float32), rng.integers(0, 2, (6, 3)).astype(np.float32)) for _ in range(4)
]
weight = rng.standard_normal((3, 4), dtype=np.float32)

if sys.argv[1] == "golden":
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(4, 3, bias=False)

        def forward(self, x, y):
            logits = self.fc(x)
            return torch.nn.functional.binary_cross_entropy_with_logits(logits, y)

    net = Net()
    net.fc.weight.data = torch.from_numpy(weight)
    for x, y in batches:
        net.zero_grad()
        net(torch.from_numpy(x), torch.from_numpy(y)).backward()
else:
    import mindspore as ms
    from mindspore import nn, ops

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc = nn.Dense(4, 3, weight_init=ms.Tensor(weight), has_bias=False)
            self.loss = nn.BCEWithLogitsLoss()

        def construct(self, x, y):
            logits = self.fc(x)
            if FAULT:
                logits = ops.sigmoid(logits)  # fault
            return self.loss(logits, y)

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    net = Net()
    step = ms.value_and_grad(net, None, net.trainable_params())
    for x, y in batches:
        step(ms.Tensor(x), ms.Tensor(y))
