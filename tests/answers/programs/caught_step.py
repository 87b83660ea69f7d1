"""A loop catches what a bad batch raises and goes on; two steps later the logarithm of a negative number makes
NaN."""

import sys

import torch

ANSWER = {
    "kind": "iterations",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.log",
    "wants": "the logarithm, its line; what raised and was caught is no finding",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    x = torch.rand(3, 4) + 0.1
    if FAULT and step == 3:
        x[1, 1] = -1
    if step == 1:
        x = x[:, :3]
    optimizer.zero_grad()
    try:
        loss = model(x.log()).square().mean()  # fault
        loss.backward()
    except RuntimeError as error:
        print("left out:", str(error).splitlines()[0])
        continue
    optimizer.step()
