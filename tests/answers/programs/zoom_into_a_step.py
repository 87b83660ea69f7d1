"""Statistics of an eager program show a NaN; the next run is to keep the tensors of that operator alone."""

import sys

import torch

ANSWER = {
    "kind": "commands",
    "entry": "eager",
    "ask": "zoom {faulty} Default/aten.log.default-op0",
    "saved": "statistic",
    "line": False,
    "operator": "aten.log.default",
    "says": ["msdump run", "--torch-eager", "zoom_into_a_step.py faulty"],
    "exit": 0,
    "wants": "a command that runs as it is printed, with the way in, the script and its argument",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
for step in range(3):
    x = torch.rand(5, 4)
    model(torch.log(x - (2 if FAULT and step == 1 else 0))).mean().backward()
