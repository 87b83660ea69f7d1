"""From step 4 on the data come from a shard that nobody has normalised: the ReLU of a frozen block gives 0 alone."""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "aten.relu.default-op0",
    "step": 4,
    "says": ["dead", "whatever it reads"],
    "wants": "the ReLU, which is dead from step 4 on, its line",
}

torch.manual_seed(5)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer, self.head = nn.Linear(6, 16), nn.Linear(16, 6), nn.Linear(6, 2)
        nn.init.uniform_(self.inner.weight, 0.1, 0.5)
        for each in (self.inner, self.outer):
            each.requires_grad_(False)

    def forward(self, x):
        return self.head(x + self.outer(torch.relu(self.inner(x))))  # fault


net = Net()
optimizer = torch.optim.Adam(net.head.parameters(), lr=0.01)
for step in range(10):
    x = torch.rand(16, 6)
    y = (x.sum(1) > 3).long()
    if step >= 4 and sys.argv[1] == "faulty":
        x = 4 * x - 12
    loss = nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
