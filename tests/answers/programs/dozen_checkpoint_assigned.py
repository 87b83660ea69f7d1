"""A checkpoint is loaded with `assign=True` after the optimizer, which goes on to step the tensors from before.

People report that a resumed training stands at the loss of its checkpoint.
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
    "step": 0,
    "says": ["optimizer"],
    "wants": "the parameters of the model, which have gradients and no optimizer, the line of the step",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(34)


def build():
    return nn.Sequential(
        nn.Conv1d(1, 8, 5, padding=2),
        nn.BatchNorm1d(8),
        nn.ReLU(),
        nn.AdaptiveMaxPool1d(1),
        nn.Flatten(),
        nn.Linear(8, 2),
    )


saved = build().state_dict()
net = build()
optimizer = torch.optim.RMSprop(net.parameters(), lr=0.005)
net.load_state_dict(saved, assign=FAULT)
for step in range(25):
    y = torch.randint(0, 2, (48,))
    wave = torch.sin(torch.arange(32) * torch.where(y == 1, 1.2, 0.4).unsqueeze(1))
    x = (wave + 0.2 * torch.randn(48, 32)).unsqueeze(1)
    loss = functional.cross_entropy(net(x), y)
    net.zero_grad()
    loss.backward()
    optimizer.step()  # fault
    print(step, loss.item())
