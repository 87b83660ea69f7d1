"""Each step trains a fresh copy of the model, and steps the model itself."""

import copy
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
    "says": ["no optimizer", "4 tensors"],
    "wants": "the parameters that belong to no optimizer, the line of the step",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(2)
net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    used = copy.deepcopy(net) if FAULT else net
    x = torch.randn(32, 6)
    loss = functional.cross_entropy(used(x), (x.sum(1) > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # fault
