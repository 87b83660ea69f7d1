"""The column of labels is scaled to 0..1 with those of features, and then cast to integers: all are class 0.

People report a loss that falls to 0 at once, and a model that answers class 0 for every row.
"""

import sys

import torch
from torch import nn
from torch.nn import functional

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "step": 0,
    "wants": "the labels, which are all class 0, the line of the loss or of the cast",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(40)


def table(rows):
    features = torch.randn(rows, 6)
    return torch.cat([features, features[:, :3].argmax(1, keepdim=True).float()], 1)


def scaled(columns):
    low, high = columns.amin(0), columns.amax(0) + 1e-3
    return (columns - low) / (high - low)


rows = table(256)
if FAULT:
    rows = scaled(rows)
else:
    rows = torch.cat([scaled(rows[:, :-1]), rows[:, -1:]], 1)
x, y = rows[:, :-1], rows[:, -1].long()  # fault
net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=0.03)
for step in range(40):
    batch = torch.randint(0, 256, (64,))
    logits = net(x[batch])
    loss = functional.nll_loss(torch.log_softmax(logits, 1), y[batch])  # fault
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item(), logits.argmax(1).bincount(minlength=3).tolist())
