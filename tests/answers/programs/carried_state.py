"""An audio model carries its state from chunk to chunk, and a gain above 1 lets it grow until it overflows."""

import sys

import torch

ANSWER = {
    "kind": "state from step to step",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.",
    "step": 5,
    "wants": "the state that is carried from chunk to chunk overflows in the multiplication of step 5",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)


class Filter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = 1e9 if FAULT else 0.9
        self.mix = torch.nn.Linear(4, 4)

    def forward(self, chunk, state):
        state = state * self.gain + chunk.abs()  # fault
        return self.mix(state / (1 + state)), state


model, state = Filter(), torch.zeros(4)
with torch.no_grad():
    for _ in range(6):
        out, state = model(torch.rand(4) + 0.5, state)
