"""A gradient is Inf in each step, and the scaler of the loss skips all of them."""

import sys

import torch
from torch import nn
from torch.nn import functional

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "skipped",
    "step": 0,
    "says": ["SGD"],
    "wants": "that all steps are skipped by the scaler, the line of the step",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(2)
net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)
for _ in range(14):
    x = torch.randn(32, 6)
    loss = functional.cross_entropy(net(x), (x.sum(1) > 0).long())
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    if FAULT:
        net[0].bias.grad[0] = float("inf")
    scaler.step(optimizer)  # fault
    scaler.update()
