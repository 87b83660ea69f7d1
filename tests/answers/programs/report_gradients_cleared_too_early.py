"""Gradients are cleared between the backward pass and the step."""

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
    "says": ["no gradient"],
    "wants": "that the optimizer finds no gradient, the line of the step",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(2)
net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(5):
    x = torch.randn(32, 6)
    loss = functional.cross_entropy(net(x), (x.sum(1) > 0).long())
    if not FAULT:
        optimizer.zero_grad()
    loss.backward()
    if FAULT:
        optimizer.zero_grad()
    optimizer.step()  # fault
