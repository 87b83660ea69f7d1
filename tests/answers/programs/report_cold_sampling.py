"""Sampling in float16 divides logits by a temperature of 0.0001; multinomial refuses what follows, the script dies."""

import sys

import torch

ANSWER = {
    "kind": "public reports",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ends": 1,
    "ask": "nan {faulty}",
    "operator": "aten.div",
    "step": 2,
    "says": ["first unexpected Inf"],
    "wants": "the division by the temperature, its line, step 2, although the script ends with an exception",
}

torch.manual_seed(4)
embedding, head = torch.nn.Embedding(30, 16).half(), torch.nn.Linear(16, 30).half()
words = torch.tensor([[1], [2]])
with torch.no_grad():
    for step in range(4):
        logits = head(embedding(words))[:, -1] * 10
        heat = 0.0001 if step == 2 and sys.argv[1] == "faulty" else 0.8
        scaled = logits / heat  # fault
        words = torch.cat([words, torch.multinomial(torch.softmax(scaled, -1), 1)], -1)
