"""Gradients of four small batches are added up for each step of the optimizer; the sixth batch holds a negative
number."""

import sys

import torch

ANSWER = {
    "kind": "iterations",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.sqrt",
    "step": 1,
    "wants": "the square root of the second update, its line; four backward passes are one step",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for number in range(12):
    x = torch.rand(3, 4)
    if FAULT and number == 5:
        x[2, 1] = -1e-3
    loss = model(torch.sqrt(x)).square().mean() / 4  # fault
    loss.backward()
    if number % 4 == 3:
        optimizer.step()
        optimizer.zero_grad()
