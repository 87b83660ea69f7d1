"""The slope of a square root is infinite at 0: the gradient of a distance that is 0 in one place is NaN."""

import sys

import torch

ANSWER = {
    "kind": "lines",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "Gradients",
    "step": 1,
    "wants": "the gradient of the square root, iteration 1, with the line of the root in place of that of backward()",
}
FAULT = sys.argv[1] == "faulty"


def root(x: torch.Tensor) -> torch.Tensor:
    return torch.sqrt(x)  # fault


torch.manual_seed(0)
shift = torch.zeros(6, requires_grad=True)
optimizer = torch.optim.SGD([shift], lr=0.01)
for step in range(3):
    x = torch.rand(6) + 0.5
    if FAULT and step == 1:
        x[2] = shift[2].item()
    squared = (x - shift).square()
    loss = (root(squared) * squared).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
