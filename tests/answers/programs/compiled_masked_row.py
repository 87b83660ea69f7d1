"""A compiled attention gets a batch with a sentence of length 0, so that a whole row is masked."""

import sys

import torch

ANSWER = {
    "kind": "compiled models",
    "entry": "compiled",
    "ask": "nan {faulty}",
    "operator": "_softmax",
    "step": 1,
    "wants": "the softmax of a row that is masked as a whole, its line, step 1",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.project = torch.nn.Linear(4, 12)

    def forward(self, x, mask):
        query, key, value = self.project(x).chunk(3, -1)
        scores = (query @ key.transpose(-1, -2)).masked_fill(~mask[:, None, :], float("-inf"))
        weights = torch.softmax(scores, -1)  # fault
        return weights @ value


model = Attention()
compiled = torch.compile(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    lengths = torch.tensor([3, 0 if FAULT and step == 1 else 2])
    mask = torch.arange(3) < lengths[:, None]
    loss = compiled(torch.randn(2, 3, 4), mask).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
