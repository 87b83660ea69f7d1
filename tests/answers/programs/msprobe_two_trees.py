"""Two trees of msprobe with tensors: in one the GELU has another form."""

import sys

import torch
from msprobe.pytorch import PrecisionDebugger

ANSWER = {
    "kind": "msprobe trees",
    "entry": "msprobe",
    "ask": "compare {faulty} {golden}",
    "operator": "gelu",
    "says": ["approximate"],
    "wants": "gelu, its line, and that its approximate differs",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
debugger = PrecisionDebugger(dump_path=sys.argv[1], task="tensor", level="mix")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = torch.nn.Linear(6, 12), torch.nn.Linear(12, 2)

    def forward(self, x):
        hidden = torch.nn.functional.gelu(self.inner(x), approximate="tanh" if FAULT else "none")  # fault
        return self.outer(hidden)


model = Net()
debugger.start(model=model)
model(2 * torch.randn(4, 6)).square().mean().backward()
debugger.stop()
debugger.step()
