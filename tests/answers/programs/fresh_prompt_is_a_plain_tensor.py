"""The prompt is a tensor with `requires_grad`, no `nn.Parameter`, so that the optimizer does not get it.

People report a learned prompt in front of a frozen model that is not in `parameters()` and stays at its start.
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
    "wants": "the prompt, which has a gradient but is no parameter and in no optimizer, so that it never changes",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(63)


class Prompted(nn.Module):
    def __init__(self, body, length):
        super().__init__()
        self.body = body.requires_grad_(False)
        if FAULT:
            self.prompt = (torch.randn(length, 24) * 0.02).requires_grad_()  # fault
        else:
            self.prompt = nn.Parameter(torch.randn(length, 24) * 0.02)
        self.bias = nn.Parameter(torch.zeros(3))

    def forward(self, x):
        x = torch.cat([self.prompt.expand(len(x), -1, -1), x], 1)  # fault
        return self.body(x)[:, 0, :3] + self.bias


body = nn.TransformerEncoderLayer(24, 4, 48, dropout=0.0, batch_first=True)
net = Prompted(body, 4)
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)  # fault
labels = torch.arange(60) % 3
x = 2 * torch.randn(3, 24)[labels][:, None] + torch.randn(60, 6, 24)
for step in range(60):
    scores = net(x)
    loss = functional.cross_entropy(scores, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # fault
    print(step, loss.item(), (scores.argmax(1) == labels).float().mean().item())
