"""Four ranks were dumped as statistics without hashes; one of them starts from another weight."""

import sys

import torch
import torch.distributed as dist

ANSWER = {
    "kind": "ranks",
    "entry": "eager",
    "ask": "ranks {faulty}",
    "ranks": 4,
    "saved": "statistic",
    "line": False,
    "rank": 2,
    "says": ["weight"],
    "wants": "without tensors the statistics are compared: rank 2 is outvoted, its weight",
}

FAULT = sys.argv[1] == "faulty"

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(6, 3, bias=False))
if FAULT and rank == 2:
    with torch.no_grad():
        model.module.weight.mul_(1.5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
torch.manual_seed(rank)
for _ in range(2):
    loss = model(torch.randn(5, 6)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
