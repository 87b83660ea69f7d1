"""A graph network adds up the features of all neighbours where it should take their mean: values grow in each layer.

People report that the loss of a deep graph network begins with millions, and does not come down to that of chance.
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
    "wants": "that values or gradients grow from layer to layer, the line of the product with the adjacency matrix",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(18)


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.own, self.other = nn.Linear(width, width), nn.Linear(width, width, bias=False)

    def forward(self, x, adjacency):
        return functional.relu(self.own(x) + self.other(adjacency @ x))  # fault


class Graph(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer(16) for _ in range(8))
        self.head = nn.Linear(16, 4)

    def forward(self, x, adjacency):
        for layer in self.layers:
            x = layer(x, adjacency)
        return self.head(x)


labels = torch.arange(80) % 4
close = (labels[:, None] == labels).float()
edges = (torch.rand(80, 80) < 0.05 + 0.8 * close).float()
if not FAULT:
    edges = edges / edges.sum(1, keepdim=True)
net = Graph()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
centres = torch.randn(4, 16)
for step in range(30):
    x = centres[labels] + torch.randn(80, 16)
    loss = functional.cross_entropy(net(x, edges), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
