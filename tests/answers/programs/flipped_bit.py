"""Memory of one of four ranks loses a bit of a weight between the first and the second step."""

import sys

import torch
import torch.distributed as dist

ANSWER = {
    "kind": "ranks",
    "entry": "eager",
    "ask": "ranks {faulty}",
    "ranks": 4,
    "line": False,
    "rank": 3,
    "step": 1,
    "says": ["weight"],
    "wants": "rank 3 is outvoted: its weight, from step 1 on",
}

FAULT = sys.argv[1] == "faulty"

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(6, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
torch.manual_seed(rank)
for step in range(3):
    if FAULT and (rank, step) == (3, 1):
        bits = model.module.weight.detach().numpy().view("int32")
        bits[0, 0] ^= 1 << 20
    loss = model(torch.randn(5, 6)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
