"""Values are rounded to codes, and rounding has a gradient of 0."""

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
    "wants": "the layer before the rounding, whose gradient is 0, the line that rounds",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(2)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 2)

    def forward(self, x):
        y = self.a(x)
        codes = torch.round(y * 16) / 16  # fault
        return self.b(codes if FAULT else y + (codes - y).detach())


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

for _ in range(4):
    x = torch.randn(32, 6)
    y = (x.sum(1) > 0).long()
    loss = functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
