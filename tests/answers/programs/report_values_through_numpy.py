"""Values go through NumPy, which no gradient comes back from."""

import sys

import torch
from torch import nn
from torch.nn import functional

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "a.weight",
    "step": 0,
    "says": ["gets none"],
    "wants": "the first layer, which gets no gradient, the line that leaves PyTorch",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(2)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 2)

    def forward(self, x):
        y = torch.tanh(self.a(x))
        if FAULT:
            y = torch.from_numpy(y.detach().numpy().clip(-0.9, 0.9))  # fault
        return self.b(y)


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

for _ in range(4):
    x = torch.randn(32, 6)
    y = (x.sum(1) > 0).long()
    loss = functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
