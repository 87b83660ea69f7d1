"""A cross entropy over one class: the loss is 0 from the beginning on."""

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
    "says": ["gradient is 0"],
    "wants": "all parameters, whose gradient the softmax of the loss makes 0, its line",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(2)
net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(4):
    x = torch.randn(32, 6)
    y = (x.sum(1, keepdim=True) > 0).float()
    out = net(x)
    loss = functional.cross_entropy(out, y) if FAULT else functional.binary_cross_entropy_with_logits(out, y)  # fault
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
