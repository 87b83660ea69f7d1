"""A contrastive model learns its temperature, which nothing bounds, and exp of it overflows."""

import sys

import torch

ANSWER = {
    "kind": "public reports",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "aten.exp",
    "step": 1,
    "says": ["first unexpected Inf"],
    "wants": "exp of the temperature, its line, step 1; not the product of the features",
}

torch.manual_seed(2)
encoder = torch.nn.Linear(6, 4).requires_grad_(False)
temperature = torch.nn.Parameter(torch.tensor(0.5))
optimizer = torch.optim.SGD([temperature], lr=200.0)
pictures = torch.randn(6, 6)
for _ in range(4):
    features = torch.nn.functional.normalize(encoder(pictures), dim=-1)
    bounded = temperature if sys.argv[1] == "faulty" else temperature.clamp(max=4.6)
    scale = bounded.exp()  # fault
    loss = torch.nn.functional.cross_entropy(scale * features @ features.t(), torch.arange(6))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
