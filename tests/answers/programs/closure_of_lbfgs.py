"""A Poisson model is fitted with LBFGS, and a step that is too long makes its rate negative."""

import sys

import torch

ANSWER = {
    "kind": "optimizers with a closure",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.log",
    "wants": "a trial step of the line search takes the logarithm of a negative rate: log, its line in the closure",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
counts = torch.tensor([1.0, 3.0, 2.0, 5.0])
rate = torch.nn.Parameter(torch.full((4,), 0.5))
optimizer = torch.optim.LBFGS([rate], lr=1.0 if FAULT else 1e-3, max_iter=4)


def closure():
    optimizer.zero_grad()
    loss = (rate - counts * torch.log(rate)).sum()  # fault
    if FAULT:
        loss = loss + 50 * rate.sum()
    loss.backward()
    return loss


for _ in range(2):
    optimizer.step(closure)
