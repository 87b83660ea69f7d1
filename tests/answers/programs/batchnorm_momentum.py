"""A port took over a momentum of 0.9, which means 0.1 in PyTorch. Training is the same, the evaluation after it is
not."""

import sys

import torch

ANSWER = {
    "kind": "ports that differ",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "operator": "batch_norm",
    "step": 0,
    "says": ["momentum"],
    "wants": "the batch norm of step 0, its line, and that its momentum differs; not the running mean read later",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(4, momentum=0.9 if FAULT else 0.1)
        self.out = torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.out(self.norm(x))  # fault


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    loss = model(2 * torch.randn(8, 4) + 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    model(torch.ones(2, 4))
