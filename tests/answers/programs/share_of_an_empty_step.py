"""A moving average is weighted by the share of valid samples, which is 0 / 0 in an empty step."""

import math
import sys

import torch

ANSWER = {
    "kind": "what comes first",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.add",
    "step": 3,
    "says": ["alpha", "nan"],
    "wants": "the sum of iteration 3, and as its cause the scalar alpha, which is NaN",
}
FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
average = torch.zeros(2)
with torch.no_grad():
    for step in range(5):
        valid = 0 if FAULT and step == 3 else 5
        share = valid / 5 if valid else math.nan
        average = torch.add(average, model(torch.rand(5, 4)).mean(0), alpha=share)  # fault
