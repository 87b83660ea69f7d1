"""Weights are rounded to int8 row by row with the largest value of a row as its scale, and a pruned row is all
zero."""

import sys

import torch

ANSWER = {
    "kind": "quantised",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.div",
    "step": 0,
    "wants": "a row of zeros has the scale 0 and 0 / 0 is NaN: div, its line",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)


class Int8Linear(torch.nn.Module):
    def __init__(self, linear):
        super().__init__()
        weight = linear.weight.detach()
        self.weight = torch.nn.Parameter(weight)
        self.bias = torch.nn.Parameter(linear.bias.detach())

    def forward(self, x):
        scale = self.weight.abs().amax(1, keepdim=True) / 127
        codes = (self.weight / scale).round().clamp(-128, 127)  # fault
        return torch.nn.functional.linear(x, codes * scale, self.bias)


linear = torch.nn.Linear(6, 4)
if FAULT:
    linear.weight.data[2] = 0
model = torch.nn.Sequential(Int8Linear(linear), torch.nn.ReLU(), torch.nn.Linear(4, 2))
with torch.no_grad():
    model(torch.randn(3, 6))
