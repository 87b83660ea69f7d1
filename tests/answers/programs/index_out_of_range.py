"""Exception dump (op_debug_mode 4) beside the synchronous section: a word of the third batch is not in the
vocabulary."""

import sys

import torch

ANSWER = {
    "kind": "commands",
    "entry": "eager",
    "ask": "show {faulty} aten.embedding.default-op0",
    "config": {"op_debug_mode": 4},
    "ends": 1,
    "operator": "aten.embedding",
    "step": 2,
    "exit": 0,
    "quiet": 3,
    "wants": "the operator that failed, with the word 10 among its inputs, its line and step; no good step beside it",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Embedding(10, 4), torch.nn.Flatten(), torch.nn.Linear(12, 2))
for step in range(4):
    words = torch.randint(0, 10, (2, 3))
    if FAULT and step == 2:
        words[1, 1] = 10
    scores = model(words)  # fault
    scores.square().mean().backward()
