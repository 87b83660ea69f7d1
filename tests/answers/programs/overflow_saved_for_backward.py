"""A sigmoid by hand: exp overflows, the forward pass ends in 0, the backward pass multiplies 0 with the saved Inf."""

import sys

import torch

ANSWER = {
    "kind": "what comes first",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.exp",
    "step": 1,
    "never": ["came in from outside"],
    "wants": "the exponential in the forward pass of iteration 1, whose Inf the backward pass reads",
}
FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    x = torch.rand(5, 4) + 0.1
    logit = model(x) - (200 if FAULT and step == 1 else 0)
    raised = torch.exp(-logit)  # fault
    gate = 1 / (1 + raised)
    loss = (gate - 0.3).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
