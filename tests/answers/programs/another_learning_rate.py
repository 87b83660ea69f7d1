"""A schedule is read from a file that one node has in an older form: rank 1 trains with another learning rate."""

import sys

import torch
import torch.distributed as dist

ANSWER = {
    "kind": "ranks",
    "entry": "eager",
    "ask": "ranks {faulty}",
    "ranks": 4,
    "line": False,
    "rank": 1,
    "says": ["weight"],
    "wants": "rank 1 is outvoted: its weight is no longer that of the others",
}

FAULT = sys.argv[1] == "faulty"

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(6, 3, bias=False))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02 if FAULT and rank == 1 else 0.01)
torch.manual_seed(rank)
for _ in range(3):
    loss = model(torch.randn(5, 6)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
