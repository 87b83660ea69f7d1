"""A mask is cut at a threshold, which has no gradient."""

import sys

import torch
from torch import nn
from torch.nn import functional

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "mask.weight",
    "step": 0,
    "says": ["no gradient"],
    "wants": "the mask's parameters, which get no gradient, the line of the threshold",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(2)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mask, self.a = nn.Linear(6, 6), nn.Linear(6, 2)

    def forward(self, x):
        share = torch.sigmoid(self.mask(x))
        if FAULT:
            share = (share > 0.5).float()  # fault
        return self.a(x * share)


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

for _ in range(4):
    x = torch.randn(32, 6)
    y = (x.sum(1) > 0).long()
    loss = functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
