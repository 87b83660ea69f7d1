"""Fourteen sigmoid layers make gradients vanish."""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "layers.0.weight",
    "step": 0,
    "says": ["vanishes"],
    "wants": "that the gradient vanishes from the head on, the line of the sigmoid",
}

torch.manual_seed(1)


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(14))
        self.head = nn.Linear(16, 2)

    def forward(self, x):
        for layer in self.layers:
            if sys.argv[1] == "faulty":
                x = torch.sigmoid(layer(x))  # fault
            else:
                x = x + torch.sigmoid(layer(x))
        return self.head(x)


net = Deep()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _step in range(4):
    x = torch.randn(32, 16)
    loss = nn.functional.cross_entropy(net(x), (x.sum(1) > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
