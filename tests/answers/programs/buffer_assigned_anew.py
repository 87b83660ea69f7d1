"""A module assigns its running mean anew in each step, so that DDP goes on synchronising the first tensor."""

import sys

import torch
import torch.distributed as dist

ANSWER = {
    "kind": "ranks",
    "entry": "eager",
    "ask": "ranks {faulty}",
    "ranks": 2,
    "line": False,
    "says": ["mean", "not declared"],
    "wants": "the buffer mean differs between the ranks, and nothing declares it equal",
}

FAULT = sys.argv[1] == "faulty"


class Centre(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))
        self.scale = torch.nn.Parameter(torch.ones(4))

    def forward(self, x):
        with torch.no_grad():
            new = 0.9 * self.mean + 0.1 * x.mean(0)
            if FAULT:
                self.mean = new
            else:
                dist.all_reduce(new)
                self.mean.copy_(new / dist.get_world_size())
        return (x - self.mean) * self.scale


dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(Centre(), torch.nn.Linear(4, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(dist.get_rank())
for _ in range(3):
    loss = model(torch.randn(6, 4) + 2).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
