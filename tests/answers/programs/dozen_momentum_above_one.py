"""A momentum of 1.09, where 0.9 was meant: each update is larger than the one before, and the loss grows.

People report a loss that first falls and then grows without an end, at a rate that is small.
"""

import sys

import torch
from torch import nn
from torch.nn import functional

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "wants": "the loss, which grows over several iterations, the line of the step",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(38)
encode = nn.Sequential(nn.Linear(12, 8), nn.ELU(), nn.Linear(8, 3))
decode = nn.Sequential(nn.Linear(3, 8), nn.ELU(), nn.Linear(8, 12))
optimizer = torch.optim.SGD([*encode.parameters(), *decode.parameters()], lr=0.05, momentum=1.09 if FAULT else 0.9)
factors = torch.randn(3, 12)
for step in range(21):
    x = torch.randn(64, 3) @ factors
    loss = functional.mse_loss(decode(encode(x)), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # fault
    print(step, loss.item())
