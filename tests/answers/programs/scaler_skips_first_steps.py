"""Autocast with float16: the scaler skips the first steps, as it should; step 7 takes the logarithm of a negative."""

import sys

import torch

ANSWER = {
    "kind": "what is no finding",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.log",
    "step": 7,
    "wants": "the logarithm of iteration 7; the skipped steps are no finding and come last",
}
FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**17)
for step in range(9):
    x, target = torch.rand(6, 8), torch.rand(6, 4)
    weight = torch.tensor(-1.0 if FAULT and step == 7 else 3.0)
    with torch.autocast("cpu", dtype=torch.float16):
        error = model(x).float() - target
        loss = weight.log() * error.square().sum()  # fault
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
