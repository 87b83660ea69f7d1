"""The divergence is a sum over the batch, the reconstruction a mean over all pixels: the latent code says nothing.

People report a VAE that draws the same mean picture for each input, and a reconstruction loss that stays where it is.
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
    "wants": "the divergence, a sum that drowns the mean of the reconstruction, so that mean and variance of the code "
    "collapse to the prior",
}

FAULT = sys.argv[1] == "faulty"
torch.manual_seed(55)


class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(36, 48), nn.ReLU())
        self.mean = nn.Linear(48, 4)
        self.log_variance = nn.Linear(48, 4)
        self.decoder = nn.Sequential(nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, 36))

    def forward(self, x):
        hidden = self.body(x)
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        code = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        return self.decoder(code), mean, log_variance


net = Coder()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
pictures = torch.randn(256, 3) @ torch.randn(3, 36)
for step in range(60):
    x = pictures[torch.randint(256, (128,))]
    drawn, mean, log_variance = net(x)
    divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp())  # fault
    if FAULT:
        likeness = functional.mse_loss(drawn, x)  # fault
        loss = likeness + divergence.sum()  # fault
    else:
        likeness = functional.mse_loss(drawn, x, reduction="sum") / len(x)
        loss = likeness + divergence.sum() / len(x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item(), functional.mse_loss(drawn, x).item(), divergence.mean().item())
