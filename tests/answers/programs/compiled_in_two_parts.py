"""A compiled model looks at a value in the middle, which cuts its graph in two; the NaN is made in the second
part."""

import sys

import torch

ANSWER = {
    "kind": "compiled models",
    "entry": "compiled",
    "ask": "nan {faulty}",
    "operator": "aten.log",
    "step": 2,
    "wants": "log in the part behind the graph break, its line, step 2",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = torch.nn.Linear(4, 6), torch.nn.Linear(6, 2)

    def forward(self, x):
        hidden = self.inner(x).sigmoid()
        if hidden.mean().item() > 2:
            raise ValueError("out of range")
        return self.outer(torch.log(hidden - (0.9 if FAULT and x[0, 0] > 9 else 0.0)))  # fault


compiled = torch.compile(Net())
for step in range(3):
    x = torch.randn(3, 4)
    if step == 2:
        x[0, 0] = 10
    compiled(x).square().mean().backward()
