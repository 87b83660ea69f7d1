"""Results go to memory that was made once, by out=; before that it held what another computation had left there."""

import sys

import torch

ANSWER = {
    "kind": "what is no finding",
    "entry": "eager",
    "ask": "nan {faulty}",
    "line": False,
    "says": ["finite"],
    "never": ["first NaN"],
    "exit": 0,
    "wants": "no finding: nothing reads the memory before it is written",
}
LEFT = float("nan") if sys.argv[1] == "faulty" else 0.0

torch.manual_seed(0)
buffer = torch.empty(4, 3)
buffer.numpy().fill(LEFT)
rows = torch.empty_strided((8, 3), (3, 1))
rows.numpy().fill(LEFT)
model = torch.nn.Linear(3, 3)
with torch.no_grad():
    for _ in range(3):
        y = model(torch.rand(4, 3))
        torch.mul(y, 2, out=buffer)
        torch.cat([buffer, y], out=rows)
        first = rows[:4]
        first.copy_(y)
        rows.sum()
