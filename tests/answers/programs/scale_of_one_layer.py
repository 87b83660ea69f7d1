"""Fake-quantised layers take their scales from a calibration table, in which one has the wrong sign."""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "names and iterations",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "operator": "1-FakeQuantLinear/",
    "step": 0,
    "says": ["scale"],
    "wants": "the operator of layer 1 that uses the scale, and that this input differs",
}
CALIBRATED = {"0": 0.004, "1": 0.005 if sys.argv[1] != "faulty" else -0.005, "2": 0.003}


class FakeQuantLinear(nn.Linear):
    def set_scale(self, value):
        self.register_buffer("scale", torch.tensor(value))

    def forward(self, x):
        codes = (self.weight / self.scale).round().clamp(0, 127)  # fault
        return nn.functional.linear(x, codes * self.scale, self.bias)


torch.manual_seed(0)
model = nn.Sequential(*(FakeQuantLinear(6, 6) for _ in CALIBRATED))
for name, layer in model.named_children():
    layer.set_scale(CALIBRATED[name])
with torch.no_grad():
    for _ in range(2):
        model(torch.rand(4, 6))
