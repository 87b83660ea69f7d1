"""A model is quantised by torch.ao while it runs (quantize_dynamic); one large weight of the third layer spoils
its codes."""

import sys

import torch
from torch.ao.quantization import quantize_dynamic

ANSWER = {
    "kind": "quantised models",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "operator": "layers.2",
    "wants": "the third layer of the model, whose weight has an outlier, ranked ahead of the others that merely round",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(16, 16) for _ in range(4))

    def forward(self, x):
        for layer in self.layers[:2]:
            x = torch.tanh(layer(x))
        x = torch.tanh(self.layers[2](x))  # fault
        return self.layers[3](x)


model = Net().eval()
with torch.no_grad():
    model.layers[2].weight[1, 2] = 20
if FAULT:
    model = quantize_dynamic(model, {torch.nn.Linear})
with torch.no_grad():
    model(torch.randn(4, 16))
