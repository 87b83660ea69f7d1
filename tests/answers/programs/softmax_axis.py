"""A port of an attention takes the softmax over the queries in place of the keys."""

import sys

import torch

ANSWER = {
    "kind": "ports that differ",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "operator": "aten._softmax",
    "says": ["dim"],
    "wants": "softmax, its line, and that its dim differs",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
project = torch.nn.Linear(6, 18)
out = torch.nn.Linear(6, 6)


def attention(x):
    query, key, value = project(x).chunk(3, -1)
    scores = query @ key.transpose(-1, -2) / 6**0.5
    weights = scores.softmax(-2 if FAULT else -1)  # fault
    return out(weights @ value)


with torch.no_grad():
    attention(torch.randn(2, 5, 6))
