"""The weights of the graph layers are made with `torch.ones`: the units of the first layer are equal and stay equal.

People report a graph network of their own whose loss stops early, and whose features are equal in each column.
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
    "wants": "the units of the first layer, which are all equal in each step since the weights start at one value",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(57)


class GraphLayer(nn.Module):
    def __init__(self, wide, out):
        super().__init__()
        if FAULT:
            self.weight = nn.Parameter(torch.ones(wide, out) / wide)  # fault
        else:
            self.weight = nn.Parameter(torch.randn(wide, out) / wide**0.5)
        self.bias = nn.Parameter(torch.zeros(out))

    def forward(self, x, adjacency):
        return adjacency @ (x @ self.weight) + self.bias  # fault


class GraphNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = GraphLayer(8, 32)
        self.second = GraphLayer(32, 32)
        self.head = nn.Linear(32, 4)

    def forward(self, x, adjacency):
        hidden = self.first(x, adjacency).relu()  # fault
        return self.head(self.second(hidden, adjacency).relu())


labels = torch.arange(80) % 4
edges = (torch.rand(80, 80) < torch.where(labels[:, None] == labels, 0.3, 0.02)).float()
adjacency = ((edges + edges.T) > 0).float() + torch.eye(80)
adjacency = adjacency / adjacency.sum(1, keepdim=True)
x = torch.randn(4, 8)[labels] + 2 * torch.randn(80, 8)
net = GraphNet()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(40):
    scores = net(x, adjacency)
    loss = functional.cross_entropy(scores, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item(), (scores.argmax(1) == labels).float().mean().item())
