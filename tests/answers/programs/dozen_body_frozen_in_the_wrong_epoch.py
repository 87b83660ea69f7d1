"""The body shall be frozen in the first two epochs, but the comparison is the other way round.

People report a loss that falls in the first two epochs and hardly from then on.
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
    "step": 8,
    "says": ["body"],
    "wants": "the parameters of body, without a gradient from iteration 8 on, the line that freezes them",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(36)


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 32), nn.SiLU(), nn.Linear(32, 4), nn.SiLU())
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.body(x))


def freeze(net, epoch):
    for weight in net.body.parameters():
        weight.requires_grad_(epoch < 2 if FAULT else epoch >= 2)  # fault


net = Regressor()
optimizer = torch.optim.Adam(net.parameters(), lr=0.03)
x = torch.rand(4, 64, 2) * 2 - 1
y = torch.sin(2 * x[..., :1]) * x[..., 1:]
step = 0
for epoch in range(10):
    freeze(net, epoch)
    for batch, target in zip(x, y, strict=True):
        loss = functional.mse_loss(net(batch), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # fault
        print(step, loss.item())
        step += 1
