"""The mask of an attention hides every place: queries and keys learn nothing."""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "q.weight",
    "step": 0,
    "says": ["gradient is 0"],
    "wants": "queries and keys, whose gradient the mask makes 0, its line",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(2)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(6, 6, bias=False) for _ in range(4))

    def forward(self, x, mask):
        scores = self.q(x) @ self.k(x).mT / 2.4
        scores = scores.masked_fill(mask, -1e9)  # fault
        return self.out(scores.softmax(-1) @ self.v(x)).mean((1, 2))


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    x = torch.randn(8, 5, 6)
    keep = torch.ones(5, 5).tril().bool()
    mask = (keep | ~keep) if FAULT else ~keep
    loss = (net(x, mask) - x[:, 0, 0]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
