"""A check is printed in the first step alone; in the second step a logarithm of a negative target makes NaN."""

import sys

import torch

ANSWER = {
    "kind": "names and iterations",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.log",
    "step": 1,
    "never": ["came in from outside"],
    "wants": "the logarithm of the target, in iteration 1; the printed check shifts no name",
}
FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    x, target = torch.rand(5, 4), torch.rand(5, 3) + 0.1
    if FAULT and step == 1:
        target[0, 0] = -0.5
    y = model(x)
    if step == 0:
        print("largest prediction error at the start:", (y - target).abs().max().item())
    error = y - target.log()  # fault
    loss = error.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
