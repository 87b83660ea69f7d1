"""A hand-written normaliser keeps a running variance, and a wrong sign lets it fall below zero after some steps."""

import sys

import torch

ANSWER = {
    "kind": "buffers",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.sqrt",
    "step": 3,
    "wants": "the running variance has become negative: sqrt, its line, in the step in which it does",
}

FAULT = sys.argv[1] == "faulty"


class Normalise(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("variance", torch.ones(4))

    def forward(self, x):
        new = x.var(0)
        if FAULT:
            self.variance -= 0.3 * new
        else:
            self.variance += 0.3 * (new - self.variance)
        return x / self.variance.sqrt()  # fault


torch.manual_seed(0)
model = torch.nn.Sequential(Normalise(), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(64, 4)
x = (x - x.mean(0)) / x.std(0)
for _ in range(5):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
