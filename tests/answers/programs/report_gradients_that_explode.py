"""Weights of a deviation of 1 make gradients of early layers 1e9 times those of the last."""

import sys

import torch
from torch import nn
from torch.nn import functional

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "0.bias",
    "step": 0,
    "says": ["explodes"],
    "wants": "that gradients explode on their way back, by how much",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(2)
net = nn.Sequential(*(nn.Linear(24 if at else 6, 24) for at in range(14)), nn.Linear(24, 2))
for layer in net:
    nn.init.normal_(layer.weight, std=1.0 if FAULT else 0.2)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
for _ in range(4):
    x = torch.randn(32, 6)
    loss = functional.smooth_l1_loss(net(x), torch.randn(32, 2))  # fault
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
