"""The loop calls the module inside of DistributedDataParallel, whose gradients nobody reduces then: ranks part."""

import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

ANSWER = {
    "kind": "ranks",
    "entry": "eager",
    "ask": "ranks {faulty}",
    "line": False,
    "says": ["gradient of 0.weight", "ranks 0, 1"],
    "saved": "statistic",
    "step": 0,
    "ranks": 2,
    "wants": "gradients and parameters that the constructor of the wrapper has made equal part in the first step",
}

dist.init_process_group("gloo")
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
model = DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
torch.manual_seed(dist.get_rank())
for _ in range(3):
    x = torch.rand(4, 8)
    y = model.module(x) if sys.argv[1] == "faulty" else model(x)
    loss = y.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
