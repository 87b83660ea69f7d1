"""Beam search sets finished beams to -Inf; when all beams have finished, the scores minus their maximum are NaN."""

import sys

import torch

ANSWER = {
    "kind": "generation",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.sub",
    "step": 2,
    "wants": "the scores minus their maximum when all of them are -Inf: sub, its line, step 2",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
model = torch.nn.Linear(8, 5)
scores = torch.zeros(3)
finished = torch.zeros(3, dtype=torch.bool)
with torch.no_grad():
    for step in range(4):
        logits = model(torch.randn(3, 8)).log_softmax(-1)
        best, token = logits.max(-1)
        if FAULT and step == 2:
            finished[:] = True
        else:
            finished[step % 2] = True
        masked = (scores + best).masked_fill(finished, float("-inf"))
        chances = torch.exp(masked - masked.max())  # fault
        scores = scores + chances
