"""A hand-written autograd Function for unit vectors guards its forward pass against a length of zero and forgets
the backward pass."""

import sys

import torch

ANSWER = {
    "kind": "custom autograd Function",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.div",
    "step": 1,
    "wants": "the division in the backward method of the Function, its line, step 1",
}

FAULT = sys.argv[1] == "faulty"


class Unit(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        length = x.norm(dim=-1, keepdim=True)
        y = x / length.clamp_min(1e-6)
        ctx.save_for_backward(y, length)
        return y

    @staticmethod
    def backward(ctx, gradient):
        y, length = ctx.saved_tensors
        along = (gradient * y).sum(-1, keepdim=True)
        return (gradient - along * y) / length  # fault


torch.manual_seed(0)
layer = torch.nn.Linear(5, 3, bias=False)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for step in range(3):
    x = torch.randn(4, 5)
    if FAULT and step == 1:
        x[2] = 0
    loss = (Unit.apply(layer(x)) - 0.5).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
