"""A compiled model under DistributedDataParallel on four ranks; between two steps one bit of a weight of rank 2
changes."""

import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

ANSWER = {
    "kind": "ranks",
    "entry": "compiled",
    "ask": "ranks {faulty}",
    "operator": "up.weight",
    "line": False,
    "step": 2,
    "rank": 2,
    "ranks": 4,
    "says": ["rank 2 is outvoted, first in iteration 2: up.weight"],
    "never": ["not declared equal", "far from the median", "incomplete"],
    "wants": "rank 2, the parameter up.weight, from step 2 on; nothing else is wrong",
}
FAULT = sys.argv[1] == "faulty"


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(8, 16)
        self.down = torch.nn.Linear(16, 2)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
net = Net()
model = torch.compile(DistributedDataParallel(net))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
torch.manual_seed(rank)
for step in range(4):
    if FAULT and (rank, step) == (2, 2):
        net.up.weight.detach().view(torch.int32)[3, 1] ^= 1 << 20
    loss = model(torch.rand(4, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
