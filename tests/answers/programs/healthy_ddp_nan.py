"""A job of two ranks with DistributedDataParallel in which nothing is wrong; its buckets are made outside of Python."""

import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

ANSWER = {
    "kind": "what is no finding",
    "entry": "eager",
    "ask": "nan {faulty}",
    "line": False,
    "says": ["finite"],
    "never": ["first NaN", "first unexpected Inf"],
    "exit": 0,
    "ranks": 2,
    "wants": "no finding",
}
# Nothing is faulty in either form: the buckets are smaller in one of them, so that there are more.
BUCKET_MB = 0.0001 if sys.argv[1] == "faulty" else 25

torch.use_deterministic_algorithms(True)  # which fills memory that is made with NaN
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
