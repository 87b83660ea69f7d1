"""A script dumps with msprobe; the gradient of a square root at 0 is infinite."""

import sys

import torch
from msprobe.pytorch import PrecisionDebugger

ANSWER = {
    "kind": "msprobe trees",
    "entry": "msprobe",
    "ask": "nan {faulty}",
    "operator": "sqrt.0.backward",
    "step": 1,
    "wants": "the backward record of sqrt, step 1, the line of sqrt",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
debugger = PrecisionDebugger(dump_path=sys.argv[1], task="statistics", level="L1")
model = torch.nn.Linear(4, 3, bias=False)
for step in range(2):
    debugger.start()
    left, right = torch.randn(5, 4), torch.randn(5, 4)
    if FAULT and step == 1:
        right[2] = left[2]
    apart = model(left - right).square().sum(-1)
    distance = torch.sqrt(apart)  # fault
    distance.mean().backward()
    debugger.stop()
    debugger.step()
