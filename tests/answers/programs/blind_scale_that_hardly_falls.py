"""A scaler of the loss with a backoff of 0.999: once its scale is too large for float16, steps are skipped for long.

People report that training in mixed precision learns for a while, and that the loss then stays where it is.
"""

import sys

import torch
from torch import nn

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "says": ["skip"],
    "wants": "that the scaler skips all steps from one on, the line of its step",
}

torch.manual_seed(22)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(20, 32), nn.SiLU(), nn.Linear(32, 4))
        self.decoder = nn.Sequential(nn.Linear(4, 32), nn.SiLU(), nn.Linear(32, 20))

    def forward(self, x):
        return self.decoder(self.encoder(x))


net = Autoencoder()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
backoff = 0.999 if sys.argv[1] == "faulty" else 0.5
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**14, backoff_factor=backoff, growth_interval=2)
basis = torch.randn(4, 20)
for step in range(40):
    x = torch.randn(32, 4) @ basis
    with torch.autocast("cpu", dtype=torch.float16):
        loss = (net(x).float() - x).square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)  # fault
    scaler.update()
    print(step, loss.item(), scaler.get_scale())
