"""Gradients are left off around the encoder, as they were for validation."""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "encoder.weight",
    "step": 0,
    "says": ["gradients are off"],
    "wants": "the encoder's parameters, which get no gradient, the line that runs without",
}

torch.manual_seed(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = nn.Linear(6, 6), nn.Linear(6, 2)

    def encode(self, x):
        with torch.set_grad_enabled(sys.argv[1] == "healthy"):
            return torch.relu(self.encoder(x))  # fault

    def forward(self, x):
        return self.head(self.encode(x))


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _step in range(4):
    x = torch.randn(8, 6)
    loss = nn.functional.cross_entropy(net(x), (x.sum(1) > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
