"""A bound of 0 was meant to turn the clipping off; it multiplies all gradients with 0.

People report a recurrent net whose gradients are all 0 after the clipping and whose loss stays the same.
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
    "says": ["gradient"],
    "wants": "the gradients, which the clipping to a norm of 0 makes 0, so that the step changes nothing",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(59)
CLIP = 0.0 if FAULT else 1.0  # fault


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(8, 16)
        self.cell = nn.GRU(16, 32, batch_first=True)
        self.head = nn.Linear(32, 8)

    def forward(self, x):
        return self.head(self.cell(self.letters(x))[0])


net = Counter()
optimizer = torch.optim.RMSprop(net.parameters(), lr=0.005)
start = torch.randint(8, (48, 1))
text = (start + 3 * torch.arange(13)) % 8
for step in range(25):
    scores = net(text[:, :-1])
    loss = functional.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), CLIP)  # fault
    optimizer.step()  # fault
    print(step, loss.item())
