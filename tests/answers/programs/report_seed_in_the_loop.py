"""A seed that is set in each step draws the same noise for each batch of a denoiser."""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "step": 1,
    "operator": "randn_like",
    "says": ["random numbers are the same"],
    "wants": "the operator that draws the same noise in each iteration, and its line",
}

torch.manual_seed(3)
data = torch.randn(64, 6)
net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 6))
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for step in range(6):
    if sys.argv[1] == "faulty":
        torch.manual_seed(0)
    x = data[8 * step : 8 * step + 8]
    noise = torch.randn_like(x)  # fault
    loss = (net(x + noise) - noise).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
