"""Three steps of SGD, right on both sides; the port calls value_and_grad and the optimizer itself."""

import sys

import numpy as np

ANSWER = {
    "kind": "iterations counted otherwise",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "line": False,
    "exit": 0,
    "says": ["agree"],
    "never": ["first difference", "different weights or data"],
    "wants": "that both agree, although the port has two iterations for one of the first implementation",
}

rng = np.random.default_rng(0)
x = rng.standard_normal((5, 6), dtype=np.float32)
weight = rng.standard_normal((4, 6), dtype=np.float32)

if sys.argv[1] == "golden":
    import torch

    fc = torch.nn.Linear(6, 4, bias=False)
    fc.weight.data = torch.from_numpy(weight)
    optimizer = torch.optim.SGD(fc.parameters(), lr=0.1)
    for _ in range(3):
        loss = fc(torch.from_numpy(x)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
else:
    import mindspore as ms
    from mindspore import nn

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc = nn.Dense(6, 4, has_bias=False, weight_init=ms.Tensor(weight))

        def construct(self, x):
            return self.fc(x).square().mean()

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    net = Net()
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    gradients = ms.value_and_grad(net, None, net.trainable_params())
    if sys.argv[1] == "healthy":
        step = nn.TrainOneStepCell(net, optimizer).set_train()
    else:

        def step(x):
            optimizer(gradients(x)[1])

    for _ in range(3):
        step(ms.Tensor(x))
