"""Stochastic depth takes the share of dropped paths for that of kept ones: with a share of 0, no block is used.

People report that their transformer does not do better than a linear model, though its code runs through all blocks.
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
    "operator": "blocks.",
    "step": 0,
    "wants": "the parameters of the blocks, whose gradient is 0, the line of the mask or of the product with it",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(13)


class DropPath(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, x):
        drawn = torch.rand(len(x), 1, 1)
        kept = drawn < self.rate if FAULT else drawn >= self.rate  # fault
        return x * kept / (1 - self.rate)  # fault


class Block(nn.Module):
    def __init__(self, width, rate):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.drop = DropPath(rate)

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.drop(self.attention(y, y, y, need_weights=False)[0])
        return x + self.drop(self.mlp(self.norm2(x)))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Linear(4, 16), nn.Linear(16, 2)
        self.blocks = nn.Sequential(*(Block(16, rate=0.0) for _ in range(2)))

    def forward(self, x):
        return self.head(self.blocks(self.embed(x)).mean(1))


net = Encoder()
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
for step in range(40):
    x = torch.randn(64, 5, 4)
    loss = functional.cross_entropy(net(x), (x[..., 0].abs().mean(1) > 0.78).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
