"""Sentences of different lengths lie in a nested tensor; pooling divides by the length, and one sentence is empty."""

import sys

import torch

ANSWER = {
    "kind": "nested tensors",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.div",
    "step": 0,
    "wants": "the sum over a sentence divided by its length of 0: div, its line",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
lengths = [3, 0, 2] if FAULT else [3, 1, 2]
words = torch.nested.nested_tensor([torch.randn(n, 4) for n in lengths])
classify = torch.nn.Linear(4, 2)
padded = torch.nested.to_padded_tensor(words, 0.0)
pooled = padded.sum(1) / torch.tensor(lengths)[:, None]  # fault
loss = torch.nn.functional.cross_entropy(classify(pooled), torch.tensor([0, 1, 1]))
loss.backward()
