"""Mixed precision: gradients are clipped while they are still scaled, so that a step is almost nothing."""

import sys

import torch

ANSWER = {
    "kind": "public reports",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} --tensors 0-2 {script} {mode}",
    "ask": "compare {faulty} {golden}",
    "operator": "",
    "step": 0,
    "never": ["different weights or data"],
    "wants": "that only the good run unscales before it clips, or the clipping, the line, step 0",
}

torch.manual_seed(4)
net = torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.ReLU(), torch.nn.Linear(12, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
x, y = torch.randn(16, 6), torch.randn(16, 1)
for _ in range(3):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = (net(x).float() - y).square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    if sys.argv[1] != "faulty":
        scaler.unscale_(optimizer)  # fault
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)  # fault
    scaler.step(optimizer)
    scaler.update()
