"""A network was ported from PyTorch to MindSpore with its weights, and trained four steps; its GELU has MindSpore's
default, the form with tanh."""

import sys

import numpy as np

ANSWER = {
    "kind": "ports to MindSpore",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "operator": "GeLU",
    "step": 0,
    "wants": "the GELU of step 0, its line; parameters after the update are not those before it, and all else agrees",
}

FAULT = sys.argv[1] == "faulty"

rng = np.random.default_rng(0)
w1, w2 = rng.standard_normal((8, 4), dtype=np.float32), rng.standard_normal((2, 8), dtype=np.float32)
b1, b2 = np.zeros(8, np.float32), np.zeros(2, np.float32)
batches = [
    (rng.standard_normal((5, 4), dtype=np.float32), rng.standard_normal((5, 2), dtype=np.float32)) for _ in range(4)
]


def with_torch():
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = torch.nn.Linear(4, 8), torch.nn.Linear(8, 2)
            self.act = torch.nn.GELU()

        def forward(self, x):
            return self.fc2(self.act(self.fc1(x)))

    net = Net()
    names = ("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias")
    net.load_state_dict(
        {name: torch.from_numpy(array.copy()) for name, array in zip(names, (w1, b1, w2, b2), strict=True)}
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in batches:
        loss = torch.nn.functional.mse_loss(net(torch.from_numpy(x)), torch.from_numpy(y))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def with_mindspore():
    import mindspore as ms
    from mindspore import nn

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc1 = nn.Dense(4, 8, weight_init=ms.Tensor(w1), bias_init=ms.Tensor(b1))
            self.fc2 = nn.Dense(8, 2, weight_init=ms.Tensor(w2), bias_init=ms.Tensor(b2))
            self.act = nn.GELU() if FAULT else nn.GELU(approximate=False)

        def construct(self, x):
            return self.fc2(self.act(self.fc1(x)))  # fault

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    net = Net()
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))
    step.set_train()
    for x, y in batches:
        step(ms.Tensor(x), ms.Tensor(y))


with_torch() if sys.argv[1] == "golden" else with_mindspore()
