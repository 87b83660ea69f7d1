"""A job of two ranks with a compiled model under DistributedDataParallel in which nothing is wrong, asked what they
disagree about."""

import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

ANSWER = {
    "kind": "what is no finding",
    "entry": "compiled",
    "ask": "ranks {faulty}",
    "line": False,
    "says": ["all of them are equal"],
    "never": ["damaged", "incomplete", "not declared equal"],
    "exit": 0,
    "ranks": 2,
    "wants": "no finding: inputs and gradients before their reduction may differ, parameters do not",
}
# Nothing is faulty in either form; in one of them the wrapper is around the compiled model, in the other one inside.
IS_OUTSIDE = sys.argv[1] == "faulty"


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(8, 16)
        self.down = torch.nn.Linear(16, 2)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


dist.init_process_group("gloo")
torch.manual_seed(0)
net = Net()
model = DistributedDataParallel(torch.compile(net)) if IS_OUTSIDE else torch.compile(DistributedDataParallel(net))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
torch.manual_seed(dist.get_rank())
for _ in range(3):
    loss = model(torch.rand(4, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
