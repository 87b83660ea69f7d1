"""A port computes the keys before the queries, and multiplies the keys with another gain."""

import sys

import torch

ANSWER = {
    "kind": "ports that differ",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "operator": "aten.mul",
    "wants": "the gain of the keys, its line; that keys and queries are computed in another order is no difference",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
x, first, second = torch.randn(4, 6), torch.randn(6, 6), torch.randn(6, 6)
gain = 1.5 if FAULT else 2.0
if sys.argv[1] == "golden":
    query = (x @ first) * 0.5
    key = (x @ second) * gain
else:
    key = (x @ second) * gain  # fault
    query = (x @ first) * 0.5
scores = torch.softmax(query @ key.T, -1)
