"""A weight decay of 10 takes all of the weights in each step."""

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
    "says": ["towards 0"],
    "wants": "the weights, which fall towards 0, the line of the step",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(2)
net = nn.Sequential(nn.Linear(6, 8, bias=False), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, weight_decay=10.0 if FAULT else 1e-4)
for _ in range(6):
    x = torch.randn(32, 6)
    loss = functional.cross_entropy(net(x), (x.sum(1) > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # fault
