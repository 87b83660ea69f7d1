"""The loss is made anew from its own number, and asks for a gradient that leads nowhere."""

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
    "says": ["no parameter"],
    "wants": "that the loss is made of no parameter, its line",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(2)
net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    x = torch.randn(32, 6)
    loss = functional.cross_entropy(net(x), (x.sum(1) > 0).long())
    if FAULT:
        loss = torch.tensor(loss.item(), requires_grad=True)  # fault
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
