"""A schedule for epochs is stepped for each batch: the learning rate is 0 from step 4 on."""

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
    "says": ["learning rate is 0"],
    "wants": "the parameters, which stand still since the learning rate is 0, the line of the step",
}

torch.manual_seed(1)
net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda at: max(0.0, 1 - at / (4 if sys.argv[1] == "faulty" else 12))
)
for _step in range(12):
    x = torch.randn(32, 6)
    loss = nn.functional.cross_entropy(net(x), (x.sum(1) > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # fault
    schedule.step()
