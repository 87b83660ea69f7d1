"""A detector averages the error over the boxes that matched. In one step none did."""

import sys

import torch

ANSWER = {
    "kind": "empty reductions",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.mean",
    "step": 1,
    "wants": "the mean over no boxes at all: mean, its line, step 1",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
head = torch.nn.Linear(6, 4)
optimizer = torch.optim.AdamW(head.parameters(), lr=1e-2)
for step in range(3):
    boxes = head(torch.randn(10, 6))
    overlap = torch.rand(10)
    if not FAULT:
        overlap[0] = 0.9
    elif step == 1:
        overlap *= 0.5
    matched = overlap > 0.5
    errors = (boxes - 1.0).abs()[matched]
    loss = errors.mean()  # fault
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
