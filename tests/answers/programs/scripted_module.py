"""A model is compiled by torch.jit.script; the second batch holds a negative number."""

import sys
import warnings

import torch

ANSWER = {
    "kind": "export",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.log",
    "step": 1,
    "wants": "log inside of the scripted module, the script's line that calls it, step 1",
}

FAULT = sys.argv[1] == "faulty"

warnings.simplefilter("ignore")
torch.manual_seed(0)


class Score(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.out = torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.out(torch.log(x))


scripted = torch.jit.script(Score())
optimizer = torch.optim.SGD(scripted.parameters(), lr=0.1)
for step in range(3):
    x = torch.rand(3, 4) + 0.1
    if FAULT and step == 1:
        x[0, 0] = -1
    y = scripted(x)  # fault
    optimizer.zero_grad()
    y.square().mean().backward()
    optimizer.step()
