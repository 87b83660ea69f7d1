"""Weights near 1 are trained in bfloat16 with a small learning rate: every update is rounded away."""

import sys

import torch

ANSWER = {
    "kind": "state from step to step",
    "entry": "eager",
    "ask": "stat {faulty} --unchanged",
    "operator": "scale",
    "line": False,
    "says": ["bfloat16", "gradients"],
    "wants": "the parameter scale has gradients and is the same after all steps; the bias has changed",
}

FAULT = sys.argv[1] == "faulty"


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(4, dtype=torch.bfloat16 if FAULT else torch.float32))
        self.bias = torch.nn.Parameter(torch.zeros(4))

    def forward(self, x):
        return x * self.scale + self.bias


torch.manual_seed(0)
model = Scaled()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
for _ in range(6):
    loss = (model(torch.randn(8, 4)) - torch.randn(8, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
