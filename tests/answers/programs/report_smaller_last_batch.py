"""A statistic is kept over the batches in place; the last batch has a single sample, whose variance is NaN."""

import sys

import torch

ANSWER = {
    "kind": "public reports",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "aten.var",
    "step": 2,
    "wants": "the variance of the last batch, its line, step 2: nothing of the dump is lost",
}

torch.manual_seed(0)
layer, kept = torch.nn.Linear(3, 5), torch.ones(5)
for size in (4, 4, 1 if sys.argv[1] == "faulty" else 3):
    x = layer(torch.randn(size, 3))
    with torch.no_grad():
        kept.lerp_(x.var(0), 0.1)  # fault
    x.square().mean().backward()
    layer.zero_grad()
