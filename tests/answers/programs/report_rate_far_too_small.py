"""A learning rate of 1e-10: no weight changes in its last bit."""

import sys

import torch
from torch import nn
from torch.nn import functional

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "0.weight",
    "step": 0,
    "says": ["too small"],
    "wants": "the weights, which stand still as updates are too small, the line of the step",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(2)
net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-10 if FAULT else 1e-2)

for _ in range(6):
    x = torch.randn(32, 6)
    y = (x.sum(1) > 0).long()
    loss = functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # fault
