"""The log-probability of a normal distribution is computed inside of torch.distributions; a deviation is negative."""

import sys

import torch
from torch.distributions import Normal

ANSWER = {
    "kind": "lines",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.log",
    "step": 1,
    "says": ["normal.py"],
    "wants": "the logarithm, with the line of the script that calls the library, and the library's beside it",
}
FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(3):
    mean, raw = model(torch.rand(6, 4)).unbind(1)
    deviation = raw - 10 if FAULT and step == 1 else torch.nn.functional.softplus(raw)
    policy = Normal(mean, deviation, validate_args=False)
    loss = -policy.log_prob(torch.rand(6)).mean()  # fault
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
