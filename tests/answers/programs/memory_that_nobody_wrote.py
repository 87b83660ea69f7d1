"""Memory that was allocated is read before all of it is written; PyTorch fills it with NaN, as it may be filled."""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "what comes first",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "step": 0,
    "says": ["no operator has written"],
    "variants": {
        "last_row": {
            "goes_wrong": "A result is allocated by `empty`, and its last row is never written.",
            "wants": "the line that allocates the result",
        },
        "to_empty": {
            "goes_wrong": "A model from the meta device gets memory by `to_empty`, and one layer is not initialised.",
            "operator": "2-Linear",
            "says": ["no operator has written", "before the first step already, in 2.weight"],
            "wants": "the line of `to_empty`, and the weight that is so before the first step",
        },
    },
}
FAULT, WHICH = sys.argv[1] == "faulty", sys.argv[2]

torch.manual_seed(0)
torch.use_deterministic_algorithms(True)  # fills memory that it allocates


class Padded(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        out = torch.empty(len(x) + 1, 4)  # fault last_row
        out[: len(x)] = self.fc(x)
        if not FAULT:
            out[len(x) :] = 0
        return out


if WHICH == "last_row":
    net = Padded()
else:
    with torch.device("meta"):
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    net.to_empty(device="cpu")  # fault to_empty
    net[0].reset_parameters()
    if not FAULT:
        net[2].reset_parameters()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(3):
    loss = net(torch.randn(3, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
