"""Background has the weight 0 in a cross entropy, and one batch shows nothing but background."""

import sys

import torch

ANSWER = {
    "kind": "losses",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.nll_loss",
    "step": 1,
    "wants": "the weights of the classes in the batch sum up to 0: nll_loss, the line of cross_entropy, step 1",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
model = torch.nn.Linear(5, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
weight = torch.tensor([0.0, 1.0, 2.0])
for step in range(3):
    x, y = torch.randn(6, 5), torch.tensor([0, 1, 2, 0, 1, 2])
    if FAULT and step == 1:
        y = torch.zeros(6, dtype=torch.long)
    loss = torch.nn.functional.cross_entropy(model(x), y, weight=weight)  # fault
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
