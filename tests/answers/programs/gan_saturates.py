"""A GAN with two optimizers and the loss log(1 - D(G(z))): once the discriminator's sigmoid is exactly 1, its
logarithm is -Inf."""

import sys

import torch

ANSWER = {
    "kind": "GAN, two optimizers",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.log",
    "wants": "the discriminator is sure, and the logarithm of 0 is -Inf: log, the line of the generator's loss",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
generator = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
critic = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1), torch.nn.Sigmoid())
of_generator = torch.optim.Adam(generator.parameters(), lr=1e-3)
of_critic = torch.optim.Adam(critic.parameters(), lr=1e-3)
for step in range(3):
    real = torch.randn(16, 2) + 3
    fake = generator(torch.randn(16, 2))
    loss = -(critic(real).clamp_min(1e-4).log().mean() + (1 - critic(fake.detach())).clamp_min(1e-4).log().mean())
    of_critic.zero_grad()
    loss.backward()
    of_critic.step()
    if FAULT and step == 1:
        with torch.no_grad():
            critic[2].bias.add_(60)
    loss = (1 - critic(fake)).log().mean()  # fault
    of_generator.zero_grad()
    loss.backward()
    of_generator.step()
