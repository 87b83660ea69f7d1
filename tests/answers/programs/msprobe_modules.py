"""A script dumps with msprobe at level L0, modules alone; one module divides by a deviation of 0."""

import sys

import torch
from msprobe.pytorch import PrecisionDebugger

ANSWER = {
    "kind": "msprobe trees",
    "entry": "msprobe",
    "ask": "nan {faulty}",
    "operator": "scale",
    "step": 0,
    "wants": "the module whose output is not finite while its input is, and the line that calls it",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
debugger = PrecisionDebugger(dump_path=sys.argv[1], task="statistics", level="L0")


class Scale(torch.nn.Module):
    def forward(self, x):
        return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + (0 if FAULT else 1e-5))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.scale, self.outer = torch.nn.Linear(4, 6), Scale(), torch.nn.Linear(6, 2)

    def forward(self, x):
        hidden = self.scale(self.inner(x).clamp(max=-2))  # fault
        return self.outer(hidden)


model = Net()
debugger.start(model=model)
model(torch.rand(3, 4)).square().mean().backward()
debugger.stop()
debugger.step()
