"""A checkpoint was trained with an epsilon of 1e-12, the port keeps the default."""

import sys

import torch

ANSWER = {
    "kind": "ports that differ",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "operator": "aten.native_layer_norm",
    "says": ["eps"],
    "wants": "the layer norm, its line, and that its eps differs",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)


class Head(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(16, eps=1e-5 if FAULT else 1e-12)
        self.out = torch.nn.Linear(16, 3)

    def forward(self, x):
        return self.out(self.norm(x))  # fault


with torch.no_grad():
    Head()(0.01 * torch.randn(4, 16))
