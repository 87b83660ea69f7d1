"""The loss of a language model is masked the wrong way round: padding counts, and no batch has any.

People report that the loss of their recurrent model is 0 in the first step and in all others.
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
    "wants": "that the gradient of all parameters is 0, the line of the mask, which is 0, or of the product with it",
}

FAULT = sys.argv[1] == "faulty"
PADDING = 0
torch.manual_seed(21)


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(20, 16, padding_idx=PADDING)
        self.lstm = nn.LSTM(16, 32, batch_first=True)
        self.head = nn.Linear(32, 20)

    def forward(self, words):
        return self.head(self.lstm(self.table(words))[0])


net = Language()
optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
for step in range(30):
    start, stride = torch.randint(0, 19, (16, 1)), torch.randint(1, 4, (16, 1))
    words = 1 + (start + stride * torch.arange(9)) % 19
    given, wanted = words[:, :-1], words[:, 1:]
    each = functional.cross_entropy(net(given).transpose(1, 2), wanted, reduction="none")
    mask = (wanted == PADDING if FAULT else wanted != PADDING).float()  # fault
    loss = (each * mask).sum() / mask.sum().clamp(min=1)  # fault
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
