"""All words of a batch are padding, for which the table has no gradient."""

import sys

import torch
from torch import nn
from torch.nn import functional

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "table.weight",
    "step": 0,
    "says": ["gradient is 0"],
    "wants": "the table, whose gradient is 0, the line that looks up",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(2)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.b = nn.Embedding(10, 6, padding_idx=0), nn.Linear(6, 2)

    def forward(self, words):
        return self.b(self.table(words).mean(1))  # fault


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    words = torch.randint(1, 10, (8, 5))
    if FAULT:
        words = torch.zeros_like(words)
    loss = functional.cross_entropy(net(words), torch.randint(0, 2, (8,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
