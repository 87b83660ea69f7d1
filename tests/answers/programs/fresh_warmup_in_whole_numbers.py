"""The warm-up divides with `//`, so that the rate is 0 until the last step of the warm-up, and the run ends before.

People report a transformer whose loss does not move at all in the first epochs with a schedule of their own.
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
    "wants": "the learning rate, which is 0 in each step, so that no parameter changes: the schedule or the step",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(53)
WARMUP = 50 if FAULT else 5


def factor(step):
    if FAULT:
        return min(1.0, (step + 1) // WARMUP)  # fault
    return min(1.0, (step + 1) / WARMUP)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 32)
        self.block = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.head = nn.Linear(32, 4)

    def forward(self, x):
        return self.head(self.block(self.words(x)))


net = Tagger()
optimizer = torch.optim.AdamW(net.parameters(), lr=0.003)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)  # fault
text = torch.randint(20, (32, 12))
tags = text % 4
for step in range(30):
    loss = functional.cross_entropy(net(text).flatten(0, 1), tags.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # fault
    schedule.step()  # fault
    print(step, loss.item())
