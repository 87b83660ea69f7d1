"""A job of four ranks with DistributedDataParallel in which nothing is wrong, asked what its ranks disagree about."""

import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

ANSWER = {
    "kind": "what is no finding",
    "entry": "eager",
    "ask": "ranks {faulty}",
    "line": False,
    "says": ["all of them are equal"],
    "never": ["damaged", "incomplete", "far from the median"],
    "exit": 0,
    "ranks": 4,
    "wants": "no finding",
}
# Nothing is faulty in either form: the buckets are smaller in one of them, so that there are more.
BUCKET_MB = 0.0001 if sys.argv[1] == "faulty" else 25

dist.init_process_group("gloo")
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
model = DistributedDataParallel(net, bucket_cap_mb=BUCKET_MB)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
torch.manual_seed(dist.get_rank())
for _ in range(3):
    loss = model(torch.rand(4, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
