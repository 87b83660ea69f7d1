"""ReduceLROnPlateau waits for a higher value and is given the loss: each lower loss divides the rate by ten.

People report a loss that falls for some iterations and then stands still at a high value.
"""

import sys

import torch
from torch import nn
from torch.nn import functional

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "wants": "the weights, which stand still from some iteration on as the rate falls, the line of a step",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(35)
words = nn.Embedding(20, 16)
reader, head = nn.GRU(16, 24, batch_first=True), nn.Linear(24, 2)
optimizer = torch.optim.SGD([*words.parameters(), *reader.parameters(), *head.parameters()], lr=0.5, momentum=0.9)
schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
    optimizer, mode="max" if FAULT else "min", factor=0.1, patience=3, eps=0.0
)
x = torch.randint(0, 20, (64, 7))
y = (x[:, -1] < 10).long()
for step in range(40):
    _, state = reader(words(x))
    loss = functional.cross_entropy(head(state[0]), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # fault
    schedule.step(loss.item())  # fault
    print(step, loss.item(), optimizer.param_groups[0]["lr"])
