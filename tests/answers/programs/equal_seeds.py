"""Two runs with equal seeds; in one of them the weights come to lie in memory that held something before."""

import sys

import torch

ANSWER = {
    "kind": "what is no finding",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "line": False,
    "says": ["agree: all"],
    "never": ["first difference"],
    "exit": 0,
    "wants": "no difference: what was in memory before uniform_ filled it is no input",
}
torch.manual_seed(0)
if sys.argv[1] == "faulty":
    torch.use_deterministic_algorithms(True)  # which fills memory that is made with NaN
model = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = model(torch.rand(5, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
