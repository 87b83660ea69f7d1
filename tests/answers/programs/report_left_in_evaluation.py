"""A script evaluates its model after step 5, and trains it in evaluation mode from then on."""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "norm.running_mean",
    "step": 7,
    "says": ["evaluation mode", "norm.running_mean"],
    "wants": "the statistics of the batch norm, which stand still from step 7 on, the line that calls it",
}

torch.manual_seed(2)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(6, 12), nn.BatchNorm1d(12), nn.Linear(12, 2)

    def forward(self, x):
        return self.last(torch.relu(self.norm(self.first(x))))  # fault


def accuracy(net, x, y):
    net.eval()
    with torch.no_grad():
        result = (net(x).argmax(1) == y).float().mean()
    if sys.argv[1] != "faulty":
        net.train()
    return result


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(12):
    x = torch.randn(16, 6) + 0.2 * step
    y = (x.sum(1) > 0).long()
    loss = nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 5:
        accuracy(net, x, y)
