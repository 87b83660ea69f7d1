"""All weights of a deep network start at a deviation of 0.02, as in a transformer, but without norms and shortcuts.

People report a loss that stays at the logarithm of the number of classes.
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
    "wants": "the weights of the first layers, whose gradient vanishes, a line of the layers or of their start",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(37)


class Plain(nn.Module):
    def __init__(self, depth, width):
        super().__init__()
        self.enter, self.leave = nn.Linear(6, width), nn.Linear(width, 4)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        for layer in (self.enter, *self.layers, self.leave):
            nn.init.zeros_(layer.bias)
            if FAULT:
                nn.init.normal_(layer.weight, std=0.02)  # fault
            else:
                nn.init.kaiming_normal_(layer.weight)

    def forward(self, x):
        x = functional.relu(self.enter(x))
        for layer in self.layers:
            x = functional.relu(layer(x))  # fault
        return self.leave(x)


net = Plain(depth=10, width=48)
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
for step in range(40):
    x = torch.randn(64, 6)
    y = (x[:, 0] > 0).long() * 2 + (x[:, 1] > 0).long()
    loss = functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
