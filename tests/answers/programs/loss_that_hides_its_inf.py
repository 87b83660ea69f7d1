"""A product overflows, the logarithm of its mean is the loss, and the gradients that are clipped are NaN."""

import sys

import torch

ANSWER = {
    "kind": "optimizers",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.mul",
    "step": 1,
    "wants": "the product that overflows in the forward pass, its line, step 1; not what reads the loss",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(3):
    hidden = model(torch.randn(6, 4))
    if FAULT and step == 1:
        hidden = hidden + 60
    growth = torch.exp(hidden)
    energy = growth * growth  # fault
    loss = energy.mean().log1p()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
