"""The encoder's result is detached before it meets the loss, as one that is only looked at."""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "encoder.weight",
    "step": 0,
    "wants": "the encoder's parameters, which get no gradient, cut by detach, its line",
}

torch.manual_seed(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = nn.Linear(6, 6), nn.Linear(6, 2)

    def forward(self, x):
        z = torch.tanh(self.encoder(x))
        if sys.argv[1] == "faulty":
            z = z.detach()  # fault
        return self.head(z)


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _step in range(4):
    x = torch.randn(8, 6)
    loss = nn.functional.cross_entropy(net(x), (x.sum(1) > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
