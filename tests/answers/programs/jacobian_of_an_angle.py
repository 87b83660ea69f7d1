"""A robot arm takes the Jacobian of joint angles with torch.func; two links that point the same way make it
infinite."""

import sys

import torch
from torch.func import jacrev

ANSWER = {
    "kind": "functional transforms",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.rsqrt",
    "wants": "the gradient of acos at 1 is infinite: its backward operator, with the line of acos",
}

FAULT = sys.argv[1] == "faulty"


def angles(links):
    a, b = links[:-1], links[1:]
    cosine = (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1))
    return torch.acos(cosine)  # fault


links = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0], [-1.0, 0.5]])
if FAULT:
    links[2] = torch.tensor([0.0, 2.0])
    links[1] = torch.tensor([0.0, 1.0])
jacobian = jacrev(angles)(links)
step = (
    torch.linalg.lstsq(jacobian.reshape(3, 8), torch.tensor([[0.1], [0.0], [-0.1]])).solution
    if not FAULT
    else jacobian.sum()
)
