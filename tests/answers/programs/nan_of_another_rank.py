"""Rank 1 of two reads a bad record: its NaN reaches rank 0 with the reduction of the gradients."""

import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

ANSWER = {
    "kind": "what comes first",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.log",
    "step": 1,
    "rank": 1,
    "ranks": 2,
    "wants": "the logarithm of rank 1, iteration 1; rank 0 has it from the reduction",
}
FAULT = sys.argv[1] == "faulty"

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(rank)
for step in range(3):
    x = torch.rand(5, 4) + 0.1
    if FAULT and rank == 1 and step == 1:
        x[2, 3] = -1.0
    loss = model(x.log()).square().mean()  # fault
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
