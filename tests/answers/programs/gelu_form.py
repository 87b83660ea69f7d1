"""A block was ported with the tanh form of GELU in place of the exact one."""

import sys

import torch

ANSWER = {
    "kind": "ports that differ",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "operator": "aten.gelu",
    "says": ["approximate"],
    "wants": "gelu, its line, and that its approximate is tanh against none",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(8, 32), torch.nn.Linear(32, 8)

    def forward(self, x):
        hidden = torch.nn.functional.gelu(self.up(x), approximate="tanh" if FAULT else "none")  # fault
        return x + self.down(hidden)


model = torch.nn.Sequential(Block(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 2))
model(3 * torch.randn(4, 8)).square().sum().backward()
