"""Adam with an epsilon of 0 meets a parameter whose gradient is exactly 0."""

import sys

import torch

ANSWER = {
    "kind": "optimizers",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten._foreach_addcdiv_",
    "step": 0,
    "wants": "the list operator of Adam that divides 0 by 0, with what it wrote, the line of the optimizer's step",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, eps=0 if FAULT else 1e-8, foreach=True)
for _ in range(2):
    x = torch.rand(8, 4)
    x[:, 3] = 0
    loss = (model(x) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # fault
