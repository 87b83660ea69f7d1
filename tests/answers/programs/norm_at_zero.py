"""The gradient of a norm at 0 divides 0 by 0, which PyTorch masks again; step 3 takes the root of a negative number."""

import sys

import torch

ANSWER = {
    "kind": "what is no finding",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.sqrt",
    "step": 3,
    "wants": "the square root of iteration 3; what the formula of the norm makes and masks itself is no finding",
}
FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
center = torch.zeros(3, requires_grad=True)
optimizer = torch.optim.SGD([center], lr=0.1)
for step in range(5):
    points = torch.rand(4, 3) if step else torch.zeros(4, 3)
    distance = torch.linalg.vector_norm(points - center, dim=1)
    margin = -1.0 if FAULT and step == 3 else 9.0
    loss = distance.mean() + torch.sqrt(margin - 0.1 * distance.mean())  # fault
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
