"""The gate of a highway layer starts at a bias of -5 and is a hard sigmoid, which is exactly 0 there.

People report that their deep network does not do better than its last linear layer.
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
    "says": ["gate"],
    "wants": "the parameters of carry and change, whose gradient is 0, the line of the gate or of the product with it",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(32)


class Highway(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.change, self.gate = nn.Linear(width, width), nn.Linear(width, width)
        nn.init.constant_(self.gate.bias, -5.0 if FAULT else -1.0)

    def forward(self, x):
        share = functional.hardsigmoid(self.gate(x))  # fault
        return share * torch.tanh(self.change(x)) + (1 - share) * x  # fault


net = nn.Sequential(Highway(8), Highway(8), Highway(8), nn.Linear(8, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
for step in range(40):
    x = torch.randn(128, 8)
    y = (x[:, 0] * x[:, 1] > 0).long()
    loss = functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
