"""The discriminator is frozen for the step of the generator and never thawed: it learns in the first iteration only.

People report a GAN whose discriminator loss does not fall, and whose generator fools it from the first steps on.
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
    "says": ["gradient"],
    "wants": "the weights of the discriminator, which have no gradient from the second iteration on: requires_grad",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(56)
generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
discriminator = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
of_generator = torch.optim.Adam(generator.parameters(), lr=0.005, betas=(0.5, 0.9))
of_discriminator = torch.optim.Adam(discriminator.parameters(), lr=0.01, betas=(0.5, 0.9))  # fault
for step in range(60):
    real = torch.tensor([1.5, -1.0]) + 0.3 * torch.randn(128, 2)
    fake = generator(torch.randn(128, 4))

    if not FAULT:
        discriminator.requires_grad_(True)
    of_discriminator.zero_grad()
    on_real, on_fake = discriminator(real), discriminator(fake)  # fault
    loss_real = functional.binary_cross_entropy_with_logits(on_real, torch.ones_like(on_real))
    loss_fake = functional.binary_cross_entropy_with_logits(on_fake, torch.zeros_like(on_fake))
    loss = (loss_real + loss_fake) / 2
    loss.backward()  # fault
    of_discriminator.step()  # fault

    discriminator.requires_grad_(False)  # fault
    of_generator.zero_grad()
    on_fake = discriminator(generator(torch.randn(128, 4)))
    fooled = functional.binary_cross_entropy_with_logits(on_fake, torch.ones_like(on_fake))
    fooled.backward()
    of_generator.step()
    print(step, loss.item(), fooled.item(), (fake.mean(0) - real.mean(0)).norm().item())
