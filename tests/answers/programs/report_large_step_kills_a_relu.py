"""One step with a rate of 30 leaves a ReLU that is 0 for every input: nothing behind it learns any more."""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "first.weight",
    "step": 1,
    "wants": "the step of the optimizer that is far too large, or the ReLU that is all 0 since",
}

torch.manual_seed(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(5, 12), nn.Linear(12, 1)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))  # fault


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(6):
    x = torch.rand(16, 5) + 0.5
    y = -x.sum(1, keepdim=True)
    for g in optimizer.param_groups:
        g["lr"] = 30.0 if step == 1 and sys.argv[1] == "faulty" else 0.01
    loss = (net(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # fault
