"""The scores of a deployed model differ from those of the notebook: there, nobody called eval()."""

import sys

import torch

ANSWER = {
    "kind": "ports that differ",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "operator": "drop-Dropout",
    "wants": "the dropout that one of the two runs has alone, its line",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = torch.nn.Linear(6, 12), torch.nn.Linear(12, 2)
        self.drop = torch.nn.Dropout(0.3)

    def forward(self, x):
        hidden = torch.relu(self.inner(x))
        hidden = self.drop(hidden)  # fault
        return self.outer(hidden)


model = Net().train(FAULT)
with torch.no_grad():
    model(torch.randn(5, 6))
