"""The weights of the start are loaded in each step, not once: each update is lost, and the loss never moves."""

import copy
import sys

import torch
from torch import nn

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "step": 0,
    "says": ["loss stands still"],
    "wants": "the loss is the same in all iterations though the optimizer makes its steps",
}

torch.manual_seed(3)
net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
start = copy.deepcopy(net.state_dict())
optimizer = torch.optim.Adam(net.parameters(), 0.01)
x, y = torch.randn(32, 6), torch.randint(0, 2, (32,))
for step in range(6):
    if sys.argv[1] == "faulty" or step == 0:
        net.load_state_dict(start)
    loss = nn.functional.cross_entropy(net(x), y)  # fault
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
