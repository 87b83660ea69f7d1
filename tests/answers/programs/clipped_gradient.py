"""Gradients are clipped by their norm, and an Inf among them makes all of them NaN. It is made where the gradient
of 1 / x squares a large number."""

import sys

import torch

ANSWER = {
    "kind": "optimizers",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "Gradients/",
    "step": 1,
    "wants": "the operator of the backward pass that overflows, with the line of the division; not the clipping",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(3):
    hidden = model(torch.randn(6, 4))
    if FAULT and step == 1:
        hidden = hidden - 50
    growth = torch.exp(hidden)
    loss = 1 / growth.mean()  # fault
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
