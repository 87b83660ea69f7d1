"""A healthy run with batches of very different size: some values grow a thousandfold from one step to the next."""

import sys

import torch

ANSWER = {
    "kind": "what is no finding",
    "entry": "eager",
    "ask": "nan {faulty}",
    "line": False,
    "says": ["finite"],
    "never": ["what grew first"],
    "exit": 0,
    "wants": "no finding: all is finite, and nothing leads to a value that is not",
}
SIZES = [1.0, 1.0, 1000.0, 1.0] if sys.argv[1] == "faulty" else [1.0, 1.0, 1.0, 1.0]

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for size in SIZES:
    loss = model(size * torch.rand(5, 4)).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
