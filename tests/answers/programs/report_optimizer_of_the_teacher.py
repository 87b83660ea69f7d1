"""The optimizer was given the parameters of the teacher in place of the student's."""

import sys

import torch
from torch import nn
from torch.nn import functional

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "Sequential_1.0.weight",
    "step": 0,
    "says": ["no optimizer"],
    "wants": "the student's parameters, which belong to no optimizer, the line of the step",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(2)
teacher = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
student = nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 2))
optimizer = torch.optim.Adam((teacher if FAULT else student).parameters(), lr=0.01)
for _ in range(4):
    x = torch.randn(32, 6)
    with torch.no_grad():
        goal = teacher(x)
    loss = functional.mse_loss(student(x), goal)
    student.zero_grad()
    loss.backward()
    optimizer.step()  # fault
