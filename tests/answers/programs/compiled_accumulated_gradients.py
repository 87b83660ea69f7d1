"""Gradients of four small batches of a compiled model are added up for each step; the sixth batch holds a negative
number."""

import sys

import torch

ANSWER = {
    "kind": "iterations",
    "entry": "compiled",
    "ask": "nan {faulty}",
    "operator": "aten.sqrt",
    "step": 1,
    "wants": "the square root of the second update, its line; four backward passes are one step",
}

FAULT = sys.argv[1] == "faulty"


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.layer(torch.sqrt(x))  # fault


torch.manual_seed(0)
net = Net()
model = torch.compile(net)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
for number in range(12):
    x = torch.rand(3, 4)
    if FAULT and number == 5:
        x[2, 1] = -1e-3
    loss = model(x).square().mean() / 4
    loss.backward()
    if number % 4 == 3:
        optimizer.step()
        optimizer.zero_grad()
