"""A hard choice by argmax stands between the scores and the loss: nothing tells the scores what to learn."""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "scores.weight",
    "step": 0,
    "says": ["no gradient"],
    "wants": "the scores' parameters, which get no gradient, cut by argmax, its line",
}

torch.manual_seed(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scores, self.table, self.head = nn.Linear(6, 5), nn.Embedding(5, 4), nn.Linear(4, 2)

    def forward(self, x):
        s = self.scores(x)
        if sys.argv[1] == "faulty":
            z = self.table(s.argmax(-1))  # fault
        else:
            z = s.softmax(-1) @ self.table.weight
        return self.head(z)


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
for _step in range(4):
    x = torch.randn(32, 6)
    loss = nn.functional.cross_entropy(net(x), (x.sum(1) > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
