"""Prototypes of classes are a buffer that should follow the features; what lerp returns is thrown away.

People report that a mean which their module keeps by itself is still all zeros after the training.
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
    "says": ["prototypes"],
    "wants": "the buffer prototypes, which never changes, the line of lerp, or that of the distances, all equal",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(15)


class Prototypes(nn.Module):
    def __init__(self, classes, width):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, width))
        self.register_buffer("prototypes", torch.zeros(classes, width))

    def forward(self, x):
        return self.encoder(x)

    @torch.no_grad()
    def follow(self, features, labels):
        for label in labels.unique():
            mean = features[labels == label].mean(0)
            if FAULT:
                self.prototypes[label].lerp(mean, 0.3)  # fault
            else:
                self.prototypes[label].lerp_(mean, 0.3)

    def logits(self, features):
        return -(features[:, None] - self.prototypes).square().sum(-1)  # fault


net = Prototypes(4, 6)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
centres = 1.5 * torch.randn(4, 10)
for step in range(30):
    y = torch.randint(0, 4, (48,))
    features = net(centres[y] + torch.randn(48, 10))
    net.follow(features.detach(), y)
    loss = functional.cross_entropy(net.logits(features), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
