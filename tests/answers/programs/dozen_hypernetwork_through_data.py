"""A hypernetwork writes the weights of the main layer through `.data`, so that it gets no gradient itself.

People report a loss that does not fall, though `backward` raises nothing and the main layer has a gradient.
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
    "operator": "hyper.",
    "step": 0,
    "says": ["hyper"],
    "wants": "the parameters of the hypernetwork, which have no gradient, the line that writes through .data",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(31)


class Conditioned(nn.Module):
    def __init__(self):
        super().__init__()
        self.hyper = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 5))
        self.main = nn.Linear(5, 1, bias=False)

    def forward(self, x, task):
        weight = self.hyper(task).unsqueeze(0)
        if not FAULT:
            return functional.linear(x, weight)
        self.main.weight.data = weight.data  # fault
        return self.main(x)


net = Conditioned()
optimizer = torch.optim.Adam(net.hyper.parameters(), lr=0.02)
tasks, truths = torch.eye(3), torch.randn(3, 5)
for step in range(30):
    which = step % 3
    x = torch.randn(64, 5)
    loss = functional.mse_loss(net(x, tasks[which]), x @ truths[which].unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
