"""One rank of a job of gloo processes that is watched: `python -m ...layout_rank KIND FOLDER RANK RANKS`.

What each rank knows of the whole tensors goes to `FOLDER/truth_RANK.pt`: {name: [whole value before each step]}.
"""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

STEPS = 2


def main(kind: str, folder: Path, rank: int, ranks: int) -> None:
    import msdump

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks)
    torch.manual_seed(0)
    kinds = ddp, bypassed, fsdp, mesh, compiled, hybrid, waiting
    run = {function.__name__: function for function in kinds}[kind.removesuffix("-async")]
    step, whole = run(ranks)
    truth: dict[str, list[Any]] = {}
    config = json.loads((folder / "dump.json").read_text())
    if kind == "compiled":
        with msdump.dump(config):
            for number in range(STEPS):
                step(number, rank)
        dist.barrier()
        dist.destroy_process_group()
        return
    with msdump.watch(config=config) as watch:
        for number in range(STEPS):
            watch.pause()
            for name, value in whole().items():
                truth.setdefault(name, []).append(value)
            watch.resume()
            step(number, rank)
            watch.step()
    torch.save(truth, folder / f"truth_{rank}.pt")
    dist.barrier()
    dist.destroy_process_group()


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 7), nn.ReLU(), nn.Linear(7, 2))


def trained(model: nn.Module) -> Any:
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)

    def step(number: int, rank: int) -> None:
        model(torch.full((5, 4), rank + 1.0)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def ddp(ranks: int) -> Any:
    model = nn.parallel.DistributedDataParallel(network())
    return trained(model), lambda: {name: value.detach().clone() for name, value in model.named_parameters()}


def bypassed(ranks: int) -> Any:
    """The module inside of the wrapper is called."""
    model = nn.parallel.DistributedDataParallel(network())
    return trained(model.module), lambda: {"wrapper": model.dim}


def fsdp(ranks: int) -> Any:
    from torch.distributed.fsdp import fully_shard

    model = network()
    fully_shard(model, mesh=init_device_mesh("cpu", (ranks,), mesh_dim_names=("data",)))
    return trained(model), lambda: {
        name: value.full_tensor().detach().clone() for name, value in model.named_parameters()
    }


def hybrid(ranks: int) -> Any:
    """Shards in one axis, of which there is one, and copies in the other."""
    from torch.distributed.fsdp import fully_shard

    model = network()
    fully_shard(model, mesh=init_device_mesh("cpu", (ranks, 1), mesh_dim_names=("copies", "shards")))
    return trained(model), dict


def waiting(ranks: int) -> Any:
    """Gradients are clipped in each step, and reduced in the second one alone."""
    model = nn.parallel.DistributedDataParallel(network())

    def step(number: int, rank: int) -> None:
        with contextlib.nullcontext() if number else model.no_sync():
            model(torch.full((5, 4), rank + 1.0)).square().mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)

    return step, dict


def compiled(ranks: int) -> Any:
    """A compiled model of a parameter that is cut, and a sum over the ranks."""
    import torch.distributed._functional_collectives as collectives
    from torch.distributed.tensor import Shard, distribute_tensor

    class Cut(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            place = init_device_mesh("cpu", (ranks,), mesh_dim_names=("model",))
            self.weight = nn.Parameter(distribute_tensor(torch.arange(10.0).reshape(5, 2), place, [Shard(0)]))

        def forward(self, x: Any) -> Any:
            return collectives.all_reduce((self.weight.to_local() * x).sum(0), "sum", dist.group.WORLD)

    model = Cut()
    called = torch.compile(model, backend="msdump")

    def step(number: int, rank: int) -> None:
        with torch.no_grad():
            called(torch.ones(1))

    return step, dict


def mesh(ranks: int) -> Any:
    """Two axes, one of which has one rank: tensors that are cut, copied, and terms of a sum."""
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    place = init_device_mesh("cpu", (ranks, 1), mesh_dim_names=("data", "model"))
    left = distribute_tensor(torch.arange(20.0).reshape(4, 5), place, [Shard(1), Replicate()])
    right = distribute_tensor(torch.arange(15.0).reshape(5, 3), place, [Shard(0), Shard(1)])
    bias = distribute_tensor(torch.ones(3), place, [Replicate(), Replicate()])

    def step(number: int, rank: int) -> None:
        partial = torch.mm(left, right)
        torch.add(partial.redistribute(place, [Replicate(), Replicate()]), bias)

    return step, dict


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
