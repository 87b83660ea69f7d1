"""One step of a simulation calls some hundred thousand operators; the gradient of its first square root is NaN."""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "names and iterations",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "Gradients/Default/distance-Distance/",
    "step": 0,
    "config": {"dump_mode": 1, "kernels": ["aten.sqrt.default", "aten.mul.Tensor", "aten.div.Tensor"]},
    "wants": "the gradient of the square root, in its module: nothing is forgotten in the middle of a step",
}
FAULT = sys.argv[1] == "faulty"
STEPS = 150_000


class Distance(nn.Module):
    def forward(self, x):
        return torch.sqrt(x * x)  # fault


class Simulation(nn.Module):
    def __init__(self):
        super().__init__()
        self.distance = Distance()
        self.start = nn.Parameter(torch.tensor([1.0, 0.0 if FAULT else 2.0]))

    def forward(self):
        state = self.distance(self.start)
        for _ in range(STEPS):
            state = state + 1e-6
        return state.sum()


Simulation()().backward()
