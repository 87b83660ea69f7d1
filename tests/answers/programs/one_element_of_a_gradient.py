"""One element of the reduced gradient is wrong on one of four ranks."""

import sys

import torch
import torch.distributed as dist

ANSWER = {
    "kind": "ranks",
    "entry": "eager",
    "ask": "ranks {faulty}",
    "ranks": 4,
    "line": False,
    "rank": 2,
    "step": 1,
    "says": ["weight"],
    "wants": "rank 2 is outvoted: its gradient of the weight, in step 1",
}

FAULT = sys.argv[1] == "faulty"

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(6, 3, bias=False))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(rank)
for step in range(3):
    loss = model(torch.randn(5, 6)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    if FAULT and (rank, step) == (2, 1):
        model.module.weight.grad[1, 4] *= 1.01
    optimizer.step()
dist.destroy_process_group()
