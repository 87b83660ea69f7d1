"""A diffusion model makes its tables once; the first entry of one divides by zero, which shows when that step is
drawn."""

import sys

import torch

ANSWER = {
    "kind": "tables made once",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.",
    "wants": "the table of 1 / sqrt(1 - alpha) holds an Inf at its first entry: the line of the table",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
betas = torch.linspace(0.0 if FAULT else 1e-4, 0.02, 10)
alphas = torch.cumprod(1 - betas, 0)
noise_weight = 1 / torch.sqrt(1 - alphas)  # fault
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
for t in (5, 9, 0):
    x, noise = torch.randn(2, 4), torch.randn(2, 4)
    seen = alphas[t].sqrt() * x + (1 - alphas[t]).sqrt() * noise
    loss = (noise_weight[t] * (model(seen) - noise)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
