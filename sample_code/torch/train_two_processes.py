"""Two processes share a batch and add up what they found: torchrun --nproc_per_node 2 train_two_processes.py"""

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
from torch import nn


class Shared(nn.Module):
    """Every process sees its own half of the batch; the mean is over all of it."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return collectives.all_reduce(self.fc(x).mean(0), "sum", dist.group.WORLD)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = Shared()
    compiled = torch.compile(model)
    with torch.no_grad():
        for step in range(2):
            total = compiled(torch.full((3, 4), float(dist.get_rank() + step)))
            print(f"rank {dist.get_rank()}, step {step}: {total.tolist()}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
