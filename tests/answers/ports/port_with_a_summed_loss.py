"""The port adds up the errors of a batch, where the first implementation takes their mean."""

import sys

import numpy as np

ANSWER = {
    "kind": "ports to MindSpore",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "operator": "Reduce",
    "step": 0,
    "wants": "the reduction of the loss: a sum against a mean",
}

FAULT = sys.argv[1] == "faulty"

rng = np.random.default_rng(0)
batches = [
    (rng.standard_normal((5, 4), dtype=np.float32), rng.standard_normal((5, 3), dtype=np.float32)) for _ in range(4)
]
weight = rng.standard_normal((3, 4), dtype=np.float32)

if sys.argv[1] == "golden":
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(4, 3, bias=False)

        def forward(self, x, y):
            return (self.fc(x) - y).abs().mean()

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

        def construct(self, x, y):
            errors = ops.abs(self.fc(x) - y)
            return errors.sum() if FAULT else errors.mean()  # fault

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    net = Net()
    step = ms.value_and_grad(net, None, net.trainable_params())
    for x, y in batches:
        step(ms.Tensor(x), ms.Tensor(y))
