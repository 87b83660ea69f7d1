"""A softmax written as exp(x) / sum(exp(x)) meets a large score."""

import sys

import torch

ANSWER = {
    "kind": "losses",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.exp",
    "step": 1,
    "wants": "exp overflows, and Inf / Inf is NaN afterwards: exp, its line, step 1",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)


def attend(query, key, value):
    weights = torch.exp(query @ key.T)  # fault
    return weights / weights.sum(-1, keepdim=True) @ value


layer = torch.nn.Linear(4, 12)
optimizer = torch.optim.SGD(layer.parameters(), lr=1e-3)
for step in range(3):
    x = torch.randn(5, 4)
    if FAULT and step == 1:
        x = x * 50
    loss = attend(*layer(x).chunk(3, -1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
