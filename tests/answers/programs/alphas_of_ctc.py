"""The CTC loss returns a table that holds -Inf by design; in a later step a transcript is longer than its audio."""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "what is no finding",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten._ctc_loss",
    "step": 2,
    "says": ["output 0"],
    "wants": "the loss (output 0) of iteration 2 is Inf; the table of -Inf (output 1) is meant",
}
FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
model = nn.Linear(6, 5)
ctc = nn.CTCLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    frames = 2 if FAULT and step == 2 else 8
    logs = model(torch.rand(8, 2, 6)).log_softmax(-1)
    texts, lengths = torch.randint(1, 5, (2, 3)), torch.tensor([3, 3])
    loss = ctc(logs, texts, torch.tensor([8, frames]), lengths)  # fault
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
