"""Weight normalization is put on the convolutions after the optimizer was made, and gives them new parameters.

People report that a model with weight norm or spectral norm learns in one script and stands still in another.
"""

import sys

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "original",
    "step": 0,
    "wants": "the parameters of the weight norms, which belong to no optimizer, the line of the step or of the norm",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(14)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.first(x)), 2)
        return self.head(functional.relu(self.second(x)).mean((2, 3)))

    def normalize(self):
        for layer in (self.first, self.second, self.head):
            weight_norm(layer)  # fault


def batch():
    y = torch.randint(0, 2, (32,))
    x = 0.3 * torch.randn(32, 1, 8, 8)
    x[y == 0, :, ::2] += 1  # stripes that lie
    x[y == 1, :, :, ::2] += 1  # stripes that stand
    return x, y


net = Net()
early = torch.optim.Adam(net.parameters(), lr=0.01)
net.normalize()
optimizer = early if FAULT else torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(25):
    x, y = batch()
    loss = functional.cross_entropy(net(x), y)
    net.zero_grad()
    loss.backward()
    optimizer.step()  # fault
    print(step, loss.item())
