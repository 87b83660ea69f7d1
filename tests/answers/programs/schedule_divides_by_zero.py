"""A schedule divides 0 by 0 in its last step, and the optimizer adds the gradient with a factor of NaN."""

import sys

import torch

ANSWER = {
    "kind": "what comes first",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.add_",
    "step": 5,
    "says": ["alpha", "nan"],
    "wants": "the update of iteration 5, and as its cause the scalar alpha, which is NaN",
}
FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(7):
    left = 5 - step if FAULT else 10 - step
    optimizer.param_groups[0]["lr"] = 0.1 * left / left if left else float("nan")
    loss = model(torch.rand(5, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # fault
