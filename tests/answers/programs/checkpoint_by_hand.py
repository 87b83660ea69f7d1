"""A hand-written Function runs its block again in the backward pass; later a square root is NaN."""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "names and iterations",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.sqrt",
    "step": 2,
    "wants": "the square root in the forward pass of iteration 2 of 4: what is recomputed begins no iteration",
}
FAULT = sys.argv[1] == "faulty"


class Recompute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, block, x):
        ctx.block = block
        ctx.save_for_backward(x)
        return block(x)

    @staticmethod
    def backward(ctx, grad):
        x = ctx.saved_tensors[0].detach().requires_grad_()
        with torch.enable_grad():
            y = ctx.block(x)
        torch.autograd.backward(y, grad)
        return None, x.grad


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 6)

    def forward(self, x):
        return self.inner(x.sqrt())  # fault


torch.manual_seed(0)
stem, block, head = nn.Linear(4, 6), Block(), nn.Linear(6, 2)
parameters = [*stem.parameters(), *block.parameters(), *head.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.1)
for step in range(4):
    x = stem(torch.rand(3, 4)).sigmoid()
    if FAULT and step == 2:
        x = x - 0.9
    loss = head(Recompute.apply(block, x)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
