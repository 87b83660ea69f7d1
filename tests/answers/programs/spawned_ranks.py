"""The script spawns its ranks by itself, and the second one reads a batch with a negative number."""

import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

ANSWER = {
    "kind": "ranks",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.log",
    "step": 1,
    "rank": 1,
    "wants": "log in rank 1, step 1, its line; each process that the script spawned has its folder",
}

FAULT = sys.argv[1] == "faulty"


def work(rank, world):
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29577"}
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(rank)
    torch.nn.Linear(4, 2)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        x = torch.rand(5, 4) + 0.1
        if FAULT and (rank, step) == (1, 1):
            x[2, 2] = -3
        loss = model(torch.log(x)).square().mean()  # fault
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(work, args=(2,), nprocs=2)
