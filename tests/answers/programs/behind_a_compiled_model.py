"""The model is compiled, the loss is not: the loss takes the logarithm of what the model gives."""

import sys

import torch

ANSWER = {
    "kind": "torch.compile beside eager code",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.log",
    "step": 2,
    "wants": "log in the eager loss behind the compiled model, its line, step 2",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Softplus())
rate = torch.compile(model, fullgraph=True, backend="aot_eager")
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(4):
    counts = torch.poisson(torch.full((5, 4), 3.0))
    expected = rate(torch.randn(5, 4)) - (2.0 if FAULT and step == 2 else 0.0)
    loss = (expected - counts * torch.log(expected)).mean()  # fault
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
