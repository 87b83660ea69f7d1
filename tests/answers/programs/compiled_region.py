"""One part of an eager program is compiled with fullgraph=True; it takes the logarithm of a negative number."""

import sys

import torch

ANSWER = {
    "kind": "torch.compile beside eager code",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "compiled.",
    "step": 1,
    "wants": "the compiled function as a whole, by its name, at its line, step 1",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)


@torch.compile(fullgraph=True, backend="aot_eager")  # fault
def score(hidden):
    return torch.log(hidden + 1).sum(-1)


model = torch.nn.Linear(4, 6)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(3):
    hidden = model(torch.randn(3, 4)).tanh()
    if FAULT and step == 1:
        hidden = hidden * 3 - 1
    loss = score(hidden).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
