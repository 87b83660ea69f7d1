"""A hand-written checkpoint forgets the state of the random generator: recomputed, its dropout draws another mask."""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "names and iterations",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "operator": "bernoulli",
    "step": 0,
    "says": ["Gradients", "repeat"],
    "never": ["no operator goes wrong by itself"],
    "wants": "the dropout that runs again in the backward pass, as a repetition with another result",
}
FAULT = sys.argv[1] == "faulty"


class Recompute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, block, x):
        ctx.block, ctx.state = block, torch.get_rng_state()
        ctx.save_for_backward(x)
        return block(x)

    @staticmethod
    def backward(ctx, grad):
        x = ctx.saved_tensors[0].detach().requires_grad_()
        with torch.enable_grad(), torch.random.fork_rng():
            if not FAULT:
                torch.set_rng_state(ctx.state)
            y = ctx.block(x)
        torch.autograd.backward(y, grad)
        return None, x.grad


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 6)

    def forward(self, x):
        return nn.functional.dropout(self.inner(x), 0.5)  # fault


torch.manual_seed(0)
stem, block, head = nn.Linear(4, 6), Block(), nn.Linear(6, 2)
parameters = [*stem.parameters(), *block.parameters(), *head.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.1)
for _ in range(3):
    loss = head(Recompute.apply(block, stem(torch.rand(3, 4)))).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
