"""The script watches its own model; the model has a branch that runs in some steps only."""

import sys

import torch
from torch import nn

import msdump

ANSWER = {
    "kind": "names and iterations",
    "entry": "eager",
    "run": "python {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "aten.sqrt",
    "step": 2,
    "never": ["came in from outside"],
    "wants": "the square root of iteration 2, with its line: the branch of iteration 1 shifts no name",
}
MODE = sys.argv[1]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x, has_noise, floor):
        y = self.layer(x).sigmoid()
        if has_noise:
            y = (y - 0.01 * torch.rand(4)).abs().sqrt()
        return (y - floor).sqrt()  # fault


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
with msdump.watch(net, f"{MODE}.json"):
    for step in range(4):
        floor = 0.9 if MODE == "faulty" and step == 2 else 0.0
        loss = net(torch.rand(3, 4), step == 1, floor).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
