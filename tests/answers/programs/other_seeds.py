"""Two runs of one script, in which somebody changed the seed."""

import sys

import torch

ANSWER = {
    "kind": "what is no finding",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "operator": "aten.uniform_.default-op0",
    "says": ["random operator"],
    "never": ["first wrong operator", "its inputs agree"],
    "wants": "a random operator drew something else, and what that reaches; no operator is wrong",
}
torch.manual_seed(1 if sys.argv[1] == "faulty" else 0)
model = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 2))  # fault
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.linspace(0, 1, 20).view(5, 4), torch.linspace(1, 0, 10).view(5, 2)
for _ in range(3):
    loss = (model(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
