"""Two parts of a loss are the same, and their gradients cancel out."""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "0.weight",
    "step": 0,
    "says": ["gradient is 0"],
    "wants": "the parameters, whose gradients cancel out, the line that computes both",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(2)
net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    x = torch.randn(32, 6)
    first, second = net(x), net(x if FAULT else x + 1)  # fault
    loss = (first - second).mean() + 1.0
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
