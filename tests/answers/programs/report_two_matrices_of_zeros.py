"""Two matrices begin with zeros, and each one's gradient is 0 for the other one's sake."""

import sys

import torch
from torch import nn
from torch.nn import functional

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "b.weight",
    "step": 0,
    "says": ["gradient is 0"],
    "wants": "the second matrix, whose gradient is 0, and the zeros of the first",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(2)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 8, bias=False), nn.Linear(8, 2, bias=False)
        nn.init.zeros_(self.b.weight)
        if FAULT:
            nn.init.zeros_(self.a.weight)  # fault

    def forward(self, x):
        return self.b(self.a(x))


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)

for _ in range(4):
    x = torch.randn(32, 6)
    y = (x.sum(1) > 0).long()
    loss = functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
