"""A layer norm over an axis of one value: what it makes is its bias, whatever it reads."""

import sys

import torch
from torch import nn
from torch.nn import functional

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "a.weight",
    "step": 0,
    "says": ["gradient is 0"],
    "wants": "the layer before the norm, whose gradient is 0, the line of the norm",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(2)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.norm, self.b = nn.Linear(6, 8), nn.LayerNorm(1 if FAULT else 8), nn.Linear(8, 2)

    def forward(self, x):
        y = self.a(x)
        if FAULT:
            return self.b(self.norm(y[..., None])[..., 0])  # fault
        return self.b(self.norm(y))


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

for _ in range(4):
    x = torch.randn(32, 6)
    y = (x.sum(1) > 0).long()
    loss = functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
