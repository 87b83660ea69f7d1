"""The same training with two orders of summation: where a sum is all but zero, ReLU's gradient is on in one run and
off in the other. In the faulty run the second layer's result is also a hundredth too large from step 2 on.
"""

import sys

import numpy as np
import torch

ANSWER = {
    "kind": "ports that differ",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "operator": "aten.mul",
    "step": 2,
    "wants": "the operator that only mine has, its line, step 2; not the gradient of ReLU in step 0, which is right",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
draw = np.random.default_rng(0)
first, second = (torch.nn.Linear(64, 64, bias=False) for _ in range(2))
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.01)
for step in range(4):
    data = draw.standard_normal((128, 64)).astype(np.float32)
    row = first.weight.detach().numpy()[0]
    # Orthogonal to the first row up to rounding, on either side of it.
    data[0] -= row * (data[0] @ row) / (row @ row)
    data[0] += row * np.float32(3e-6 if sys.argv[1] == "golden" else -3e-6)
    x = torch.from_numpy(data)
    hidden = second(torch.relu(first(x)))
    if FAULT and step >= 2:
        hidden = hidden * 1.01  # fault
    loss = hidden.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
