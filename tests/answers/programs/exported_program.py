"""A model goes through torch.export, and the program that comes out is run on batches; one holds a negative
number."""

import sys

import torch

ANSWER = {
    "kind": "export",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.log",
    "step": 1,
    "wants": "log inside of the exported program, the script's line that calls it, step 1",
}

FAULT = sys.argv[1] == "faulty"


class Score(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.out = torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.out(torch.log(x))


torch.manual_seed(0)
exported = torch.export.export(Score(), (torch.rand(3, 4) + 0.1,)).module()
with torch.no_grad():
    for step in range(3):
        x = torch.rand(3, 4) + 0.1
        if FAULT and step == 1:
            x[0, 0] = -1
        y = exported(x)  # fault
