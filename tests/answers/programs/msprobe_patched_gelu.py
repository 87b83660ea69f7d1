"""A library puts its own GELU in place of PyTorch's; its constant has two digits changed. msprobe dumps the calls."""

import math
import sys

import torch
from msprobe.pytorch import PrecisionDebugger

ANSWER = {
    "kind": "msprobe trees",
    "entry": "msprobe",
    "ask": "replay {faulty} Functional.gelu.0.forward --iteration 1",
    "line": False,
    "says": ["WRONG", "Functional.gelu.0.forward"],
    "wants": "the GELU did not compute what its dumped input gives",
}

FAULT = sys.argv[1] == "faulty"


def own_gelu(x, approximate="none"):
    root = math.sqrt(2 / math.pi)
    return 0.5 * x * (1 + torch.tanh(root * (x + 0.047415 * x**3)))


if FAULT:
    torch.nn.functional.gelu = own_gelu
torch.manual_seed(0)
debugger = PrecisionDebugger(dump_path=sys.argv[1], task="tensor", level="mix")
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(approximate="tanh"), torch.nn.Linear(8, 2))
for _ in range(2):
    debugger.start(model=model)
    loss = model(torch.randn(5, 4)).square().mean()
    loss.backward()
    debugger.stop()
    debugger.step()
