"""Behind step 3 the best weights are loaded with `assign=True`: the optimizer goes on with tensors of before."""

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
    "step": 4,
    "says": ["belongs to no optimizer", "0.weight", "4 tensors that no module has"],
    "wants": "the weights that no optimizer steps from step 4 on, the line of the step",
}

torch.manual_seed(3)
net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
best = copy.deepcopy(net.state_dict())
for step in range(10):
    x = torch.randn(32, 6)
    loss = nn.functional.cross_entropy(net(x), (x.sum(1) > 0).long())
    optimizer.zero_grad()
    net.zero_grad()
    loss.backward()
    optimizer.step()  # fault
    if step == 3:
        net.load_state_dict(best, assign=sys.argv[1] == "faulty")
