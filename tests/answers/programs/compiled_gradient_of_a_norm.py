"""A compiled model measures distances; two equal points make the gradient of the square root infinite."""

import sys

import torch

ANSWER = {
    "kind": "compiled models",
    "entry": "compiled",
    "ask": "nan {faulty}",
    "operator": "Gradients/",
    "step": 1,
    "wants": "the gradient of the square root at 0, with the line of the square root, step 1",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)


class Distance(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = torch.nn.Linear(4, 3, bias=False)

    def forward(self, left, right):
        apart = self.encode(left) - self.encode(right)
        return apart.square().sum(-1).sqrt()  # fault


model = Distance()
compiled = torch.compile(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    left, right = torch.randn(5, 4), torch.randn(5, 4)
    if FAULT and step == 1:
        right[2] = left[2]
    optimizer.zero_grad()
    compiled(left, right).mean().backward()
    optimizer.step()
