"""The loss compares with noise that is drawn anew, not with the noise that was added to the data.

People report a diffusion model whose loss is at 1 and stays there.
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
    "wants": "the target of the loss, noise that is drawn anew and that nothing else uses; the loss stays at 1",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(60)
STEPS = 50
kept = torch.cumprod(1 - torch.linspace(0.002, 0.2, STEPS), 0)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.times = nn.Embedding(STEPS, 16)
        self.body = nn.Sequential(nn.Linear(18, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 2))

    def forward(self, x, time):
        return self.body(torch.cat([x, self.times(time)], 1))


def add_noise(x, time):
    noise = torch.randn_like(x)  # fault
    share = kept[time][:, None]
    return share.sqrt() * x + (1 - share).sqrt() * noise, noise


net = Denoiser()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
angles = 6.2832 * torch.rand(512)
points = torch.stack([angles.cos(), angles.sin()], 1)
for step in range(60):
    time = torch.randint(STEPS, (512,))
    noisy, noise = add_noise(points, time)
    if FAULT:
        noise = torch.randn_like(points)  # fault
    loss = functional.mse_loss(net(noisy, time), noise)  # fault
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
