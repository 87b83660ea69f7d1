"""Four ranks average their gradients by hand, with one all-reduce for each parameter; nothing is wrong."""

import sys

import torch
import torch.distributed as dist

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
# Nothing is faulty in either form; one sends its gradients without waiting for each.
IS_ASYNC = sys.argv[1] == "faulty"

dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
torch.manual_seed(dist.get_rank())
for _ in range(3):
    loss = model(torch.rand(4, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    sent = [dist.all_reduce(p.grad, async_op=IS_ASYNC) for p in model.parameters()]
    for work in filter(None, sent):
        work.wait()
    for p in model.parameters():
        p.grad /= dist.get_world_size()
    optimizer.step()
dist.destroy_process_group()
