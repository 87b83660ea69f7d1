"""The model is copied after the optimizer was made, which steps what nobody calls."""

import copy
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
    "says": ["no optimizer", "4 tensors"],
    "wants": "all parameters, which belong to no optimizer, and that it steps four others",
}

torch.manual_seed(1)
net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
old = net
if sys.argv[1] == "faulty":
    net = copy.deepcopy(net)
for _step in range(4):
    x = torch.randn(32, 6)
    loss = nn.functional.cross_entropy(net(x), (x.sum(1) > 0).long())
    net.zero_grad()
    loss.backward()
    optimizer.step()  # fault
