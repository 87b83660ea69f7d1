"""A part of the model was decorated to run without gradients."""

import sys

import torch
from torch import nn
from torch.nn import functional

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "body.a.weight",
    "step": 0,
    "says": ["gradients are off"],
    "wants": "the body's parameters, which get no gradient, the line that runs without",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(2)


class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 8)

    def forward(self, x):
        return torch.tanh(self.a(x))  # fault


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.b = Body(), nn.Linear(8, 2)
        if FAULT:
            self.body.forward = torch.no_grad()(self.body.forward)

    def forward(self, x):
        return self.b(self.body(x))


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

for _ in range(4):
    x = torch.randn(32, 6)
    y = (x.sum(1) > 0).long()
    loss = functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
