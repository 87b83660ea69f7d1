"""Scores masked with -Inf go into logsumexp, which saves them for the backward pass: all gradients are finite."""

import sys

import torch

ANSWER = {
    "kind": "what is no finding",
    "entry": "eager",
    "ask": "nan {faulty}",
    "line": False,
    "says": ["finite"],
    "never": ["first NaN", "first unexpected Inf"],
    "exit": 0,
    "wants": "no finding: the -Inf of the mask is meant, also where the backward pass reads it",
}
FILL = float("-inf") if sys.argv[1] == "faulty" else -1e4

torch.manual_seed(0)
model = torch.nn.Linear(4, 6)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    scores = model(torch.rand(5, 4)).masked_fill(torch.arange(6) > 3, FILL)
    loss = (torch.logsumexp(scores, 1) - scores[:, 0]).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
