"""A where drops the root of negative numbers in the forward pass; in the backward pass their gradient is NaN."""

import sys

import torch

ANSWER = {
    "kind": "what comes first",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.sqrt",
    "step": 1,
    "says": ["where", "gradient"],
    "wants": "the square root of iteration 1; where stops its NaN, and its gradient brings it back",
}
FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    y = model(torch.rand(5, 4)).sigmoid() - (0.5 if FAULT and step == 1 else 0.0)
    loss = torch.where(y > 0, torch.sqrt(y), 0.0).mean()  # fault
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
