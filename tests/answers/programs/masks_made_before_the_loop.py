"""Attention masks are made once, before the loop; one sequence of the second batch is padding from end to end."""

import sys

import torch

ANSWER = {
    "kind": "names and iterations",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "softmax",
    "step": 1,
    "says": ["masked_fill"],
    "never": ["came in from outside"],
    "wants": "the softmax of iteration 1, whose row is nothing but the -Inf of masked_fill",
}
FAULT = sys.argv[1] == "faulty"

LENGTHS = [[3, 5], [4, 0 if FAULT else 2], [5, 5]]
positions = torch.arange(5)
masks = [(positions >= torch.tensor(lengths)[:, None])[:, None] for lengths in LENGTHS]


class Attention(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv = torch.nn.Linear(width, 3 * width)

    def forward(self, x, mask):
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = (q @ k.transpose(1, 2) / x.shape[-1] ** 0.5).masked_fill(mask, float("-inf"))
        return scores.softmax(-1) @ v  # fault


torch.manual_seed(0)
model = Attention(8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for mask in masks:
    loss = model(torch.rand(2, 5, 8), mask).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
