"""The operator that made the first NaN is run again on its dumped inputs."""

import sys

import torch

ANSWER = {
    "kind": "commands",
    "entry": "eager",
    "ask": "replay {faulty} aten.log.default-op0 --iteration 1",
    "line": False,
    "exit": 0,
    "says": ["explained", "log"],
    "wants": "the logarithm runs again and gives what it gave: its input is to blame",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
layer = torch.nn.Linear(4, 3)
with torch.no_grad():
    for step in range(2):
        scores = layer(torch.randn(5, 4)).sigmoid()
        loss = torch.log(scores - (0.9 if FAULT and step == 1 else 0.0)).mean()
