"""Inputs are not scaled: a tanh of values of thousands is 1, and its gradient 0."""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "first.weight",
    "step": 0,
    "says": ["gradient is 0"],
    "wants": "the first layer, whose gradient the tanh makes 0, its line",
}

torch.manual_seed(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.head = nn.Linear(12, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.head(torch.tanh(self.first(x)))  # fault


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _step in range(4):
    x = torch.randint(0, 256, (32, 12)).float() * 1000
    if sys.argv[1] == "healthy":
        x = x / 255000
    loss = nn.functional.cross_entropy(net(x), (x.sum(1) > x.sum(1).mean()).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
