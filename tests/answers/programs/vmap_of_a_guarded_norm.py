"""Gradients of single samples by vmap and grad: a where guards the norm of a zero vector, but not its gradient."""

import sys

import torch
from torch.func import grad, vmap

ANSWER = {
    "kind": "lines",
    "entry": "eager",
    "ask": "nan {faulty}",
    "step": 0,
    "wants": "the line of the square root, not that of the call of vmap",
}
FAULT = sys.argv[1] == "faulty"


def length(v):
    squared = v.square().sum()
    return torch.where(squared > 0, torch.sqrt(squared), 0.0)  # fault


def energy(position, center):
    return length(position - center).pow(3)


torch.manual_seed(0)
center = torch.tensor([0.5, 0.5])
positions = torch.rand(4, 2)
if FAULT:
    positions[3] = center
for _ in range(3):
    forces = vmap(grad(energy), in_dims=(0, None))(positions, center)
    center = center - 0.01 * forces.mean(0)
