"""Only the model is compiled; the loss, which is not, takes the logarithm of a negative output."""

import sys

import torch

ANSWER = {
    "kind": "compiled models",
    "entry": "compiled",
    "ask": "nan {faulty}",
    "line": False,
    "step": 1,
    "says": ["not in the dump"],
    "wants": "the NaN came into the backward graph with the gradient of the output in step 1: look at the loss",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
compiled = torch.compile(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(3):
    out = compiled(torch.randn(6, 4)).square() + (-1.0 if FAULT and step == 1 else 0.5)
    loss = out.sqrt().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
