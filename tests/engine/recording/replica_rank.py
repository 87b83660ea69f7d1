"""One rank of a data-parallel job that records: `python -m ...replica_rank PATH RING RANK RANKS STEPS FLIP`.

Before step FLIP the last rank flips one bit of one weight; -1: no rank does. Rank 0 evaluates alone after each step.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main(path: Path, ring: Path, rank: int, ranks: int, steps: int, flip: int) -> None:
    import torch
    import torch.distributed as dist

    import msdump

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{path}/store", rank=rank, world_size=ranks)
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 2)
    )
    model = torch.nn.parallel.DistributedDataParallel(network)
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    with msdump.recorder(path, ring=ring, steps=3, budget="50M") as block, msdump.watch():
        block.step()  # from here on it alone ends steps, also where rank 0 evaluates
        for number in range(steps):
            if number == flip and rank == ranks - 1:
                with torch.no_grad():
                    network[3].weight.view(torch.int32).bitwise_xor_(torch.tensor([[1, 0, 0, 0, 0, 0, 0, 0], [0] * 8]))
            loss = model(torch.randn(5, 4)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if rank == 0:
                with torch.no_grad():
                    network.eval()(torch.ones(1, 4))
                    network.train()
            block.step()
    print(block.report())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *(int(text) for text in sys.argv[3:]))
