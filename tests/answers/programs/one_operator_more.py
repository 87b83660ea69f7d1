"""One run has a harmless operator more than the other in each block; the scale of the second block's attention is
wrong."""

import sys

import torch

ANSWER = {
    "kind": "ports that differ",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "operator": "aten.div",
    "wants": "the division by another scale in the second block; the harmless addition of 0 changes no pair",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
EXTRA = sys.argv[1] != "golden"


class Block(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale
        self.project, self.out = torch.nn.Linear(8, 24), torch.nn.Linear(8, 8)

    def forward(self, x):
        if EXTRA:
            x = x + 0.0
        query, key, value = self.project(x).chunk(3, -1)
        scores = (query @ key.transpose(-1, -2)) / self.scale  # fault
        return x + self.out(scores.softmax(-1) @ value)


model = torch.nn.Sequential(Block(8**0.5), Block(8.0 if FAULT else 8**0.5), Block(8**0.5))
with torch.no_grad():
    model(torch.randn(2, 5, 8))
