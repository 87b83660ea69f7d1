"""A job of four ranks whose parameters are sharded by FSDP2, asked what its ranks disagree about."""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

ANSWER = {
    "kind": "what is no finding",
    "entry": "eager",
    "ask": "ranks {faulty}",
    "line": False,
    "says": ["all of them are equal"],
    "never": ["damaged", "incomplete", "far from the median"],
    "exit": 0,
    "ranks": 4,
    "wants": "no finding: what is gathered is equal on all ranks, and shards need not be",
}
# Nothing is faulty in either form; one frees its parameters after the forward pass, and gathers them again.
IS_FREED = sys.argv[1] == "faulty"

torch.use_deterministic_algorithms(True)  # which fills memory that is made with NaN
dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
mesh = dist.device_mesh.init_device_mesh("cpu", (4,))
for layer in (model[0], model[2]):
    fully_shard(layer, mesh=mesh, reshard_after_forward=IS_FREED)
fully_shard(model, mesh=mesh, reshard_after_forward=IS_FREED)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
torch.manual_seed(dist.get_rank())
for _ in range(3):
    loss = model(torch.rand(4, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
