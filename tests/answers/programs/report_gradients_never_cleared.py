"""The script never clears its gradients: each step takes those of all steps before."""

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
    "says": ["never cleared"],
    "wants": "that gradients are never cleared, the line of the step",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(2)
net = nn.Sequential(nn.Linear(6, 16), nn.Linear(16, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.3)
for _ in range(14):
    x = torch.randn(32, 6)
    loss = functional.mse_loss(net(x), x[:, :2])
    if not FAULT:
        optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # fault
