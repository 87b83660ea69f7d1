"""The two sides of the moving average are swapped: the trained encoder is drawn back to the teacher in each step.

People report a self-supervised loss that stands still, and a teacher and a student that never part.
"""

import copy
import sys

import torch
from torch import nn
from torch.nn import functional

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "wants": "the encoder, which the copy after the step puts back to the teacher's weights, the line of that copy",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(51)
student = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 12))
teacher = copy.deepcopy(student).requires_grad_(False)
optimizer = torch.optim.SGD(student.parameters(), lr=1.0)


@torch.no_grad()
def moving_average(goal, source, decay):
    for old, new in zip(goal.parameters(), source.parameters(), strict=True):
        old.mul_(decay).add_(new, alpha=1 - decay)  # fault


pictures = torch.randn(128, 16)
for step in range(40):
    one = pictures + 0.8 * torch.randn_like(pictures)
    two = pictures + 0.8 * torch.randn_like(pictures)
    loss = 2 - 2 * functional.cosine_similarity(student(one), teacher(two)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # fault
    if FAULT:
        moving_average(student, teacher, 0.01)  # fault
    else:
        moving_average(teacher, student, 0.99)
    print(step, loss.item())
