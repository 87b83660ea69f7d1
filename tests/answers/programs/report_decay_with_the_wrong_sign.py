"""A penalty on weights has the wrong sign, and rewards large ones."""

import sys

import torch
from torch import nn
from torch.nn import functional

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "loss grows",
    "wants": "the loss, which grows without an end",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(2)
net = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(10):
    x = torch.randn(32, 6)
    penalty = sum(each.square().sum() for each in net.parameters())
    loss = functional.mse_loss(net(x), x[:, :2])
    optimizer.zero_grad()
    (loss + (-1.6 if FAULT else 0.001) * penalty).backward()  # fault
    optimizer.step()
