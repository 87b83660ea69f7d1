"""A ReLU stands behind the last layer, whose values all come to lie below 0."""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "b.weight",
    "step": 4,
    "says": ["relu"],
    "wants": "the ReLU, which is all 0 from step 4 on, its line",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(2)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 1)

    def forward(self, x):
        y = self.b(torch.tanh(self.a(x)))
        return torch.relu(y) if FAULT else y  # fault


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=0.5)
for _ in range(8):
    x = torch.randn(32, 6)
    loss = (net(x)[:, 0] - x.sum(1) + 6).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
