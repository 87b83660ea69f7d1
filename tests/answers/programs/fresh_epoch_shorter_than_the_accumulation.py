"""Gradients are to be collected over 8 batches, but an epoch has only 6, so that the step is never reached.

People report a loss that is the same in each epoch since they accumulate gradients on a small data set.
"""

import sys

import torch
from torch import nn
from torch.nn import functional

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "wants": "the parameters, which have gradients that grow and are never updated: no step of the optimizer",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(52)
net = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3, padding=1),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(16, 2),
)
optimizer = torch.optim.Adam(net.parameters(), lr=0.02)  # fault
ACCUMULATE = 8 if FAULT else 2  # fault
pictures = 0.3 * torch.randn(96, 1, 10, 10)
labels = torch.arange(96) % 2
pictures[labels == 0, :, 4:6, :] += 1
pictures[labels == 1, :, :, 4:6] += 1
for epoch in range(8):
    total = 0.0
    optimizer.zero_grad()
    for number, (x, y) in enumerate(zip(pictures.split(16), labels.split(16), strict=True)):
        loss = functional.cross_entropy(net(x), y) / ACCUMULATE
        loss.backward()  # fault
        total += loss.item() * ACCUMULATE
        if (number + 1) % ACCUMULATE == 0:  # fault
            optimizer.step()  # fault
            optimizer.zero_grad()
    print(epoch, total / 6)
