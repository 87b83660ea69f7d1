"""Adapters behind a reentrant checkpoint get no gradient: its input, of a frozen table, asks for none."""

import sys

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "block.0.a.weight",
    "step": 0,
    "says": ["checkpoint"],
    "wants": "the adapters, which get no gradient since the checkpoint, its line",
}

torch.manual_seed(3)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.base = nn.Linear(width, width).requires_grad_(False)
        self.a = nn.Linear(width, 2, bias=False)
        self.b = nn.Linear(2, width, bias=False)

    def forward(self, x):
        return torch.tanh(self.base(x) + self.b(self.a(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(11, 6).requires_grad_(False)
        self.block = nn.ModuleList(Block(6) for _ in range(2))
        self.head = nn.Linear(6, 3)

    def forward(self, words):
        x = self.table(words)
        if sys.argv[1] == "healthy":
            x.requires_grad_(True)
        for block in self.block:
            x = checkpoint(block, x, use_reentrant=True)  # fault
        return self.head(x.mean(1))


net = Net()
optimizer = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=0.01)
for _ in range(4):
    words, y = torch.randint(0, 11, (8, 5)), torch.randint(0, 3, (8,))
    loss = nn.functional.cross_entropy(net(words), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
