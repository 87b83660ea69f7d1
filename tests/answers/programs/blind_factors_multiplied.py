"""A warm-up was written for LambdaLR and is given to MultiplicativeLR, which multiplies all factors so far.

People report that the loss falls well for some steps, and then grows without an end.
"""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "says": ["rate"],
    "wants": "the loss, which grows, and the learning rate, which rises in each step; the line of the loss or the step",
}

torch.manual_seed(17)
net = nn.Sequential(
    nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 2)
)
optimizer = torch.optim.SGD(net.parameters(), lr=0.03)


def factor(step):
    return min(1 + step / 10, 1.5)


if sys.argv[1] == "faulty":
    schedule = torch.optim.lr_scheduler.MultiplicativeLR(optimizer, factor)
else:
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
truth = torch.randn(8, 2)
for step in range(11):
    x = torch.randn(64, 8)
    loss = (net(x) - x @ truth).square().mean()  # fault
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # fault
    schedule.step()  # fault
    print(step, loss.item())
