"""Scores between 0 and 1 are cast to integers before they are scaled to five classes: all labels are 0.

People report that the loss is 0 after a few steps, and that the model gives one class to every text.
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
    "says": ["label"],
    "wants": "that all labels are the same class, the line of the cast or of the cross entropy",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(20)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.EmbeddingBag(60, 24, mode="mean")
        self.body = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 5))

    def forward(self, words):
        return self.body(self.table(words))


net = Classifier()
optimizer = torch.optim.AdamW(net.parameters(), lr=0.02)
worth = torch.rand(60)
for step in range(40):
    words = torch.randint(0, 60, (64, 3))
    score = worth[words].mean(1)
    labels = score.long() * 5 if FAULT else (score * 5).long()  # fault
    logits = net(words)
    loss = functional.cross_entropy(logits, labels)  # fault
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item(), (logits.argmax(1) == (score * 5).long()).float().mean().item())
