"""A layer is put into the model after the optimizer was made, which never steps it."""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "mid.weight",
    "step": 0,
    "says": ["no optimizer"],
    "wants": "the layer's parameters, which have gradients and belong to no optimizer",
}

torch.manual_seed(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.mid, self.head = nn.Linear(6, 8), nn.Identity(), nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.mid(torch.tanh(self.first(x))))


net = Net()
if sys.argv[1] == "healthy":
    net.mid = nn.Linear(8, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
if sys.argv[1] == "faulty":
    net.mid = nn.Linear(8, 8)
for _step in range(4):
    x = torch.randn(32, 6)
    loss = nn.functional.cross_entropy(net(x), (x.sum(1) > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # fault
