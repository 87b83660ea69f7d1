"""The learning rate rises to 3 in step 3, and the loss grows tenfold in each step."""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "mean",
    "step": 5,
    "says": ["learning rate", "loss grows"],
    "wants": "the loss, which grows from step 5 on, its line, and the rate that rose",
}

torch.manual_seed(1)
net = nn.Sequential(nn.Linear(10, 10), nn.Linear(10, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(8):
    if step >= 3 and sys.argv[1] == "faulty":
        optimizer.param_groups[0]["lr"] = 3.0
    x = torch.randn(32, 10)
    loss = (net(x) - x[:, :4]).square().mean()  # fault
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
