"""A model is sharded over two ranks with fully_shard; the first rank takes the logarithm of a negative score."""

import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

ANSWER = {
    "kind": "ranks",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.log",
    "rank": 0,
    "step": 1,
    "ranks": 2,
    "wants": "log in rank 0, its line, step 1; buffers of the shards are no finding",
}

FAULT = sys.argv[1] == "faulty"

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
torch.manual_seed(rank)
for step in range(3):
    score = model(torch.randn(4, 6)).sigmoid()
    if FAULT and (rank, step) == (0, 1):
        score = score - 0.9
    loss = -torch.log(score).mean()  # fault
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
