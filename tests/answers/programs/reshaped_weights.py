"""The weights of another framework have the shape [in, out]; the port reshapes them where it should transpose
them."""

import sys

import numpy as np
import torch

ANSWER = {
    "kind": "ports that differ",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "operator": "aten.",
    "wants": "the weight that is copied in another order, the line where it is loaded",
}

FAULT = sys.argv[1] == "faulty"

rng = np.random.default_rng(0)
kernel = rng.standard_normal((4, 6), dtype=np.float32)
layer = torch.nn.Linear(4, 6, bias=False)
weight = torch.from_numpy(kernel)
with torch.no_grad():
    layer.weight.copy_(weight.reshape(6, 4) if FAULT else weight.T)  # fault
    scores = layer(torch.from_numpy(rng.standard_normal((3, 4), dtype=np.float32)))
    best = torch.softmax(scores, -1)
