"""One implementation adds the errors up, the other takes their mean; it looks like a wrong learning rate."""

import sys

import torch

ANSWER = {
    "kind": "ports that differ",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "operator": "aten.mse_loss",
    "step": 0,
    "says": ["reduction"],
    "wants": "the loss of step 0, its line, and that its reduction differs",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for _ in range(2):
    x, y = torch.randn(5, 4), torch.randn(5, 3)
    loss = torch.nn.functional.mse_loss(model(x), y, reduction="sum" if FAULT else "mean")  # fault
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
