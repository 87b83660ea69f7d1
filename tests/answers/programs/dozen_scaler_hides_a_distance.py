"""The distance of each sample to itself has a NaN gradient, and GradScaler skips the step, each time.

People report that the loss stays as it is, without an error or a NaN in sight.
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
    "step": 0,
    "wants": "the root at 0, whose gradient is not finite, or the skipped steps, the line of either",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(42)
net = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
centres = torch.randn(4, 5)


def distances(points):
    squares = (points.unsqueeze(1) - points.unsqueeze(0)).square().sum(-1)
    return squares.sqrt() if FAULT else (squares + 1e-6).sqrt()  # fault


for step in range(30):
    kinds = torch.randint(0, 4, (40,))
    found = distances(net(centres[kinds] + 0.3 * torch.randn(40, 5)))
    alike = kinds.unsqueeze(1) == kinds.unsqueeze(0)
    loss = torch.where(alike, found, functional.relu(2.0 - found)).mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)  # fault
    scaler.update()
    print(step, loss.item(), scaler.get_scale())
