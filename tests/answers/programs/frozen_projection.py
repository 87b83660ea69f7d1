"""A frozen projection outside of the DDP wrapper is drawn by each rank for itself."""

import sys

import torch
import torch.distributed as dist

ANSWER = {
    "kind": "ranks",
    "entry": "eager",
    "ask": "ranks {faulty}",
    "ranks": 2,
    "line": False,
    "says": ["proj", "not declared"],
    "wants": "the frozen projection differs between the ranks, and nothing declares it equal",
}

FAULT = sys.argv[1] == "faulty"


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = torch.nn.Linear(6, 4, bias=False).requires_grad_(False)

    def forward(self, x):
        return self.proj(x)


dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(7 + rank if FAULT else 7)
encoder = Encoder()
torch.manual_seed(0)
head = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
torch.manual_seed(rank)
for _ in range(2):
    loss = head(encoder(torch.randn(5, 6))).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
