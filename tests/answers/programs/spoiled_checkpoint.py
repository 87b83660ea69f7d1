"""A checkpoint of another framework holds a row of NaN in its embedding; only sentences with that word show it."""

import sys

import numpy as np
import torch

ANSWER = {
    "kind": "weights that are loaded",
    "entry": "eager",
    "ask": "nan {faulty}",
    "says": ["outside"],
    "wants": "a row of the embedding is NaN from the checkpoint on: it came in from outside, at the line that loads it",
}

FAULT = sys.argv[1] == "faulty"


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = torch.nn.Embedding(10, 4)
        self.out = torch.nn.Linear(4, 2)

    def forward(self, words):
        return self.out(self.emb(words))


rng = np.random.default_rng(0)
shapes = {"emb.weight": (10, 4), "out.weight": (2, 4), "out.bias": (2,)}
weights = {name: rng.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}
if FAULT:
    weights["emb.weight"][7] = np.nan
model = Tagger()
model.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})  # fault
with torch.no_grad():
    for words in ([1, 2, 3], [4, 7, 2]):
        scores = model(torch.tensor(words))
