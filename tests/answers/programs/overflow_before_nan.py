"""An exponential overflows, and two operators later Inf less Inf is NaN: a softmax by hand whose step is too large."""

import sys

import torch

ANSWER = {
    "kind": "what comes first",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.exp",
    "step": 2,
    "wants": "the exponential of iteration 2: the Inf is the cause, the NaN what became of it",
}
FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    logit = model(torch.rand(5, 4)) * (400 if FAULT and step == 2 else 1)
    raised = torch.exp(logit.abs())  # fault
    centered = raised - raised.mean(1, keepdim=True)
    loss = centered.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
