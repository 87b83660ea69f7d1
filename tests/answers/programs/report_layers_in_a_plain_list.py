"""Layers stand in a plain list: they are no part of the model, and no optimizer steps them."""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "Linear",
    "step": 0,
    "says": ["in no module"],
    "wants": "the layer that is in no module, the line that calls it",
}

torch.manual_seed(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [nn.Linear(6, 6) for _ in range(3)]
        self.layers = layers if sys.argv[1] == "faulty" else nn.ModuleList(layers)
        self.head = nn.Linear(6, 2)

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))  # fault
        return self.head(x)


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
for _step in range(4):
    x = torch.randn(32, 6)
    loss = nn.functional.cross_entropy(net(x), (x.sum(1) > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
