"""A gate was ported with sigmoid in place of hardsigmoid: the first operator that differs reads what the other
made."""

import sys

import torch

ANSWER = {
    "kind": "commands",
    "entry": "eager",
    "ask": "stat {faulty} --diff {golden}",
    "operator": "aten.sigmoid",
    "saved": "statistic",
    "wants": "the sigmoid, which only one run has, made the first value that differs; not other weights or data",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
inner, outer = torch.nn.Linear(4, 6), torch.nn.Linear(6, 2)
with torch.no_grad():
    hidden = inner(torch.randn(3, 4))
    if FAULT:
        gate = torch.sigmoid(hidden)  # fault
    else:
        gate = torch.nn.functional.hardsigmoid(hidden)
    out = outer(hidden * gate)
