"""Only `lora_down` passes the filter by name; `lora_up`, which starts at 0, is in no optimizer.

People report a loss that stays the same in each epoch when they fine-tune with low-rank adapters.
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
    "says": ["lora_up"],
    "wants": "lora_up, which has a gradient and no optimizer, or lora_down, whose gradient is 0 for that reason",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(33)


class Adapted(nn.Module):
    def __init__(self, base, rank):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.lora_down = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features**0.5)
        self.lora_up = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + x @ self.lora_down.T @ self.lora_up.T  # fault


net = nn.Sequential(Adapted(nn.Linear(10, 24), 4), nn.GELU(), Adapted(nn.Linear(24, 3), 4))
wanted = "lora_down" if FAULT else "lora_"
chosen = [weight for name, weight in net.named_parameters() if wanted in name]
optimizer = torch.optim.AdamW(chosen, lr=0.02, weight_decay=0.0)
x = torch.randn(96, 10)
y = x[:, :3].argmax(1)
for step in range(25):
    loss = functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # fault
    print(step, loss.item())
