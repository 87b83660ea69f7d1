"""The good run left a log of PyTorch's DebugMode in place of a dump; a port divides its scores by another number."""

import contextlib
import sys

import torch
from torch.utils._debug_mode import DebugMode

ANSWER = {
    "kind": "ports that differ",
    "entry": "eager",
    "ask": "compare {faulty} golden.txt",
    "operator": "aten.div",
    "says": ["hash norm"],
    "wants": "the division, its line, and that norms decided",
    "run": {"golden": "python {script} {mode}"},
    "also": ["golden"],
}

FAULT = sys.argv[1] == "faulty"
LOGS = sys.argv[1] == "golden"

torch.manual_seed(0)
project = torch.nn.Linear(6, 18)
out = torch.nn.Linear(6, 6)


def attention(x):
    query, key, value = project(x).chunk(3, -1)
    scores = query @ key.transpose(-1, -2) / (6 if FAULT else 6**0.5)  # fault
    return out(scores.softmax(-1) @ value)


mode = DebugMode()
with torch.no_grad(), contextlib.ExitStack() as stack:
    x = torch.randn(2, 5, 6)
    if LOGS:
        stack.enter_context(mode)
        stack.enter_context(DebugMode.log_tensor_hashes(hash_fn="norm", hash_inputs=True))
    attention(x)
if LOGS:
    with open("golden.txt", "w") as file:
        file.write(mode.debug_string())
