"""A Kullback-Leibler divergence by hand multiplies p with its logarithm; a hard label has zeros in p."""

import sys

import torch

ANSWER = {
    "kind": "losses",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.log",
    "step": 1,
    "wants": "the logarithm of a probability of 0, before 0 * -Inf becomes NaN: log, its line, step 1",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
student = torch.nn.Linear(5, 3)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
for step in range(3):
    logits = student(torch.randn(4, 5))
    teacher = torch.softmax(torch.randn(4, 3), -1)
    if FAULT and step == 1:
        teacher[1] = torch.tensor([0.0, 1.0, 0.0])
    logs = teacher.log()  # fault
    loss = (teacher * (logs - logits.log_softmax(-1))).sum(-1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
