"""A causal mask of -Inf is a buffer of the module, which is meant; a temperature of 0 in a later step is not."""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "what is no finding",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.div",
    "step": 2,
    "never": ["(mask)"],
    "wants": "the division by the temperature, iteration 2; the mask of -Inf ends in the softmax",
}
FAULT = sys.argv[1] == "faulty"


class Attention(nn.Module):
    def __init__(self, width, length):
        super().__init__()
        self.qk = nn.Linear(width, 2 * width)
        self.register_buffer("mask", torch.full((length, length), float("-inf")).triu(1))

    def forward(self, x, temperature):
        q, k = self.qk(x).chunk(2, -1)
        scores = q @ k.transpose(1, 2)
        scores = scores / temperature  # fault
        return (scores + self.mask).softmax(-1) @ x


torch.manual_seed(0)
model = Attention(6, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for temperature in (1.0, 0.5, 0.0 if FAULT else 0.25, 0.25):
    loss = model(torch.rand(2, 4, 6), temperature).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
