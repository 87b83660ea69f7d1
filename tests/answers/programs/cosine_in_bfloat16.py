"""Positions up to 300 are turned into bfloat16 before their cosine is taken, which leaves no digit behind the
point."""

import sys

import torch

ANSWER = {
    "kind": "ports that differ",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "operator": "aten.cos",
    "wants": "the cosine whose argument has lost its digits in bfloat16, its line; not the sum behind it",
}

FAULT = sys.argv[1] == "faulty"

kind = torch.float32 if sys.argv[1] == "golden" else torch.bfloat16
position = torch.arange(300).float()
if FAULT:
    position = position.to(kind)
table = torch.cos(position)  # fault
total = table.to(kind).sum()
