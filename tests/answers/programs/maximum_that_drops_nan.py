"""The logarithm of negative numbers is NaN, and fmax quietly takes its other operand: the loss stays finite."""

import sys

import torch

ANSWER = {
    "kind": "what comes first",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.log",
    "step": 1,
    "says": ["fmax"],
    "wants": "the logarithm of iteration 1, and that its NaN vanishes in fmax",
}
FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
model = torch.nn.Linear(4, 3)
floor = torch.tensor(-4.0)
for step in range(3):
    with torch.no_grad():
        energy = model(torch.rand(5, 4)).square() - (0.2 if FAULT and step == 1 else 0.0)
        decibel = torch.fmax(torch.log(energy), floor)  # fault
        decibel.mean()
