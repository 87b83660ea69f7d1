"""A script dumps with msprobe's PrecisionDebugger; one step takes the logarithm of a negative number."""

import sys

import torch
from msprobe.pytorch import PrecisionDebugger

ANSWER = {
    "kind": "msprobe trees",
    "entry": "msprobe",
    "ask": "nan {faulty}",
    "operator": "log",
    "step": 1,
    "wants": "torch.log, step 1, the line that stack.json holds",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
debugger = PrecisionDebugger(dump_path=sys.argv[1], task="statistics", level="mix")
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    debugger.start(model=model)
    x = torch.rand(5, 4) + 0.1
    if FAULT and step == 1:
        x[0, 0] = -1
    loss = model(torch.log(x)).square().mean()  # fault
    optimizer.zero_grad()
    loss.backward()
    debugger.stop()
    optimizer.step()
    debugger.step()
