"""The launcher starts two ranks; in one step the second has a batch of padding alone, and divides by the number of
words."""

import sys

import torch
import torch.distributed as dist

ANSWER = {
    "kind": "ranks",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.div",
    "step": 1,
    "rank": 1,
    "ranks": 2,
    "wants": "the division in rank 1, step 1, its line; rank 0 has it from the reduction",
}

FAULT = sys.argv[1] == "faulty"

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(rank)
for step in range(3):
    words = torch.randint(1, 3, (2, 5))
    if FAULT and (rank, step) == (1, 1):
        words[:] = 0
    counted = (words > 0).float()
    losses = model(torch.randn(2, 5, 4)).square().sum(-1)
    loss = (losses * counted).sum() / counted.sum()  # fault
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
