"""torch.utils.checkpoint without reentry runs a block again in the backward pass; a later step divides 0 by 0."""

import sys

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

ANSWER = {
    "kind": "names and iterations",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.div",
    "step": 2,
    "wants": "the division in the block, iteration 2 of 4: what is recomputed begins no iteration",
}
FAULT = sys.argv[1] == "faulty"


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 6)

    def forward(self, x):
        y = self.inner(x)
        return torch.tanh(y / x.norm(dim=-1, keepdim=True))  # fault


torch.manual_seed(0)
block, head = Block(), nn.Linear(6, 2)
nn.init.zeros_(block.inner.bias)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for step in range(4):
    x = torch.rand(3, 6)
    if FAULT and step == 2:
        x[1] = 0
    x.requires_grad_()
    loss = head(checkpoint(block, x, use_reentrant=False)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
