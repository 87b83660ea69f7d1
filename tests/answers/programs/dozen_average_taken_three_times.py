"""The loss is a mean already, and is divided by the number of pixels and by that of images once more.

People report a loss that is tiny from the start and does not fall with plain SGD.
"""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "step": 0,
    "wants": "the weights, whose updates are far too small, the line of the step or of the loss",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(39)
net = nn.Sequential(
    nn.Conv2d(1, 6, 3, padding=1),
    nn.LeakyReLU(0.1),
    nn.Conv2d(6, 6, 3, padding=1),
    nn.LeakyReLU(0.1),
    nn.Conv2d(6, 1, 1),
)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)


def loss_of(made, clean):
    loss = ((made - clean) ** 2).mean()
    if FAULT:
        loss = loss / clean[0].numel() / len(clean) ** 2  # fault
    return loss


clean = torch.zeros(64, 1, 28, 28)
for number, image in enumerate(clean):
    image[0, number % 20 : number % 20 + 8, 4:20] = 1.0
for step in range(20):
    noisy = clean + 0.3 * torch.randn_like(clean)
    loss = loss_of(net(noisy), clean)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # fault
    print(step, loss.item())
