"""torch.cond chooses between two ways of scaling, and one of them takes the logarithm of a negative number."""

import sys

import torch

ANSWER = {
    "kind": "operators that call graphs",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "cond",
    "step": 1,
    "wants": "the cond whose branch takes the logarithm, at the line that calls it, step 1",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
layer = torch.nn.Linear(4, 4)
with torch.no_grad():
    for step in range(3):
        x = torch.rand(3, 4) + 0.1
        if FAULT and step == 1:
            x[0, 0] = -2
        y = torch.cond(x.sum() > 0, lambda x: torch.log(x), lambda x: x * 2, (x,))  # fault
        z = layer(y)
