"""The loss has a term that calls a layer of the model a second time, outside of the model's forward."""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "names and iterations",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.log",
    "step": 7,
    "wants": "the logarithm of the penalty, iteration 7 of 10: a layer that the loss calls begins no iteration",
}
FAULT = sys.argv[1] == "faulty"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = nn.Linear(4, 6), nn.Linear(6, 1)

    def forward(self, x):
        return self.head(torch.tanh(self.encoder(x)))


def penalty(net, x, noise, margin):
    moved = (net.encoder(x + noise) - net.encoder(x)).square().sum(1)
    return torch.log(moved + margin).mean()  # fault


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(10):
    x, y = torch.rand(5, 4), torch.rand(5, 1)
    margin = -1.0 if FAULT and step == 7 else 1.0
    loss = (net(x) - y).square().mean() + 0.01 * penalty(net, x, 0.01 * torch.randn(5, 4), margin)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
