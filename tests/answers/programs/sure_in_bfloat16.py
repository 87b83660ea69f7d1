"""Under bfloat16 autocast a probability of 0.999 rounds to 1, and the loss takes log(1 - p)."""

import sys

import torch

ANSWER = {
    "kind": "mixed precision",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.log",
    "step": 1,
    "wants": "1 - p is 0 in bfloat16, its logarithm -Inf: log, its line, step 1",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(3):
    x, label = torch.randn(6, 4), torch.zeros(6, 1)
    if FAULT and step == 1:
        x[3] = 8 * model.weight.detach().sign()
    with torch.autocast("cpu", torch.bfloat16):
        p = torch.sigmoid(model(x) * 3)
        loss = -(label * p.clamp_min(1e-4).log() + (1 - label) * torch.log(1 - p)).mean()  # fault
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
