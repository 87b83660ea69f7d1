"""One rank of a job of four gloo processes, rank 2 with a fault: `python -m tests.ranks.job_rank KIND FOLDER RANK`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch import nn
from torch.nn.parallel import DistributedDataParallel

RANKS, STEPS, BAD = 4, 3, 2


def main(kind: str, folder: Path, rank: int) -> None:
    import msdump

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=RANKS)
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 7), nn.ReLU(), nn.Linear(7, 2)))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with msdump.watch(config=json.loads((folder / "dump.json").read_text())) as watch:
        for step in range(STEPS):
            watch.pause()
            if (kind, step, rank) == ("flipped", 1, BAD):
                with torch.no_grad():
                    model.module[2].weight.view(torch.int32)[0, 0] ^= 1
            watch.resume()
            torch.manual_seed(10 * step + rank)
            model(torch.randn(3, 4)).square().mean().backward()
            if (kind, step, rank) == ("dropped", 0, BAD):
                # As if its own gradient had never met those of the others.
                for parameter in model.parameters():
                    parameter.grad = torch.randn_like(parameter)
            reduced = funcol.all_reduce(torch.full((300_000,), rank + 1.0), "sum", dist.group.WORLD)
            (reduced * 2).sum()
            optimizer.step()
            optimizer.zero_grad()
            watch.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
