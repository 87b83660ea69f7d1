"""A contrastive model calls its encoder twice in each step; in the third a text embeds to zeros."""

import sys

import torch

ANSWER = {
    "kind": "iterations",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.div",
    "step": 2,
    "wants": "the division by the length of a text of zeros, its line, step 2; two calls of the encoder are one step",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
encoder = torch.nn.Linear(6, 4, bias=False)
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.01)
for step in range(4):
    image, text = torch.randn(3, 6), torch.randn(3, 6)
    if FAULT and step == 2:
        text[1] = 0
    left, right = encoder(image), encoder(text)
    right = right / right.square().sum(-1, keepdim=True)  # fault
    loss = torch.nn.functional.cross_entropy(left @ right.T, torch.arange(3))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
