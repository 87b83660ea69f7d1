"""A low-rank adapter starts with zeros, and a batch norm with a running mean of 0: both grow, as they should."""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "what is no finding",
    "entry": "eager",
    "ask": "nan {faulty}",
    "line": False,
    "says": ["finite"],
    "never": ["what grew first"],
    "exit": 0,
    "wants": "no finding: all is finite, and nothing leads to a value that is not",
}
MEAN = 50.0 if sys.argv[1] == "faulty" else 0.0


class Adapted(nn.Module):
    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(0.02 * torch.randn(rank, base.in_features))
        self.up = nn.Parameter(torch.full((base.out_features, rank), 1e-6))

    def forward(self, x):
        return self.base(x) + x @ self.down.T @ self.up.T


torch.manual_seed(0)
model = nn.Sequential(nn.BatchNorm1d(4), Adapted(nn.Linear(4, 3)))
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.01)
for _ in range(4):
    loss = model(torch.randn(8, 4) + MEAN).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
