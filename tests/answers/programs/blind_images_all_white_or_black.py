"""A GAN whose generator has a learning rate of 0.5: its last tanh is soon 1 or -1 for all that comes.

People report that after few steps their generator paints the same flat picture for any noise, and stays there.
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
    "wants": "the generator's tanh, which is saturated, its line, or the generator's step, which is far too large",
}

torch.manual_seed(16)


class Maker(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, noise):
        return torch.tanh(self.body(noise))  # fault


maker = Maker()
critic = nn.Sequential(nn.Linear(16, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
rate = 0.5 if sys.argv[1] == "faulty" else 2e-3
makers = torch.optim.Adam(maker.parameters(), lr=rate, betas=(0.5, 0.999))
critics = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.5, 0.999))
pattern = 0.5 * torch.sin(torch.arange(16.0))
for step in range(30):
    real = pattern + 0.2 * torch.randn(32, 16)
    fake = maker(torch.randn(32, 8))
    loss_of_critic = functional.softplus(-critic(real)).mean() + functional.softplus(critic(fake.detach())).mean()
    critics.zero_grad()
    loss_of_critic.backward()
    critics.step()
    loss_of_maker = functional.softplus(-critic(fake)).mean()
    makers.zero_grad()
    loss_of_maker.backward()
    makers.step()  # fault
    print(step, loss_of_critic.item(), loss_of_maker.item(), (fake - pattern).square().mean().item())
