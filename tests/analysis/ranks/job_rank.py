"""A rank of a job of four gloo processes, one with a fault: `python -m tests.analysis.ranks.job_rank KIND DIR RANK`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

RANKS, STEPS, BAD = 4, 3, 2
# Of a pipeline of two stages with two replicas each, on a mesh of two by two: who sends, and to whom.
RECEIVER_OF = {0: 2, 1: 3}
SENDER, RECEIVER = 1, 3
Step = Callable[[int], None]


SHARDS = ("shard", "wrong-shard", "one-wrong-shard", "one-device")


def main(kind: str, folder: Path, rank: int) -> None:
    import msdump

    torch.set_num_threads(1)
    ranks = 1 if kind == "one-device" else RANKS
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks)
    torch.manual_seed(0)
    if kind in ("overwritten", "stale", "pipeline", "both-ways"):
        step = pipeline(kind, folder, rank)
    else:
        step = tensor_parallel(kind, rank) if kind in SHARDS else data_parallel(kind, rank)
    with msdump.watch(config=json.loads((folder / "dump.json").read_text())) as watch:
        for number in range(STEPS):
            watch.pause()
            if (kind, number, rank) == ("flipped", 1, BAD):
                with torch.no_grad():
                    step.model.module[2].weight.view(torch.int32)[0, 0] ^= 1  # type: ignore[attr-defined]
            watch.resume()
            step(number)
            watch.step()
    dist.barrier()
    dist.destroy_process_group()


def data_parallel(kind: str, rank: int) -> Step:
    model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 7), nn.ReLU(), nn.Linear(7, 2)))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(number: int) -> None:
        torch.manual_seed(10 * number + rank)
        model(torch.randn(3, 4)).square().mean().backward()
        if (kind, number, rank) == ("dropped", 0, BAD):
            # As if its own gradient had never met those of the others.
            for parameter in model.parameters():
                parameter.grad = torch.randn_like(parameter)
        reduced = funcol.all_reduce(torch.full((300_000,), rank + 1.0), "sum", dist.group.WORLD)
        (reduced * 2).sum()
        optimizer.step()
        optimizer.zero_grad()

    step.model = model  # type: ignore[attr-defined]
    return step


def tensor_parallel(kind: str, rank: int) -> Step:
    """A layer whose weight is cut into rows.

    wrong-shard      it is cut into columns, which have as many elements
    one-wrong-shard  that happens to rank 3 alone
    """
    mesh = init_device_mesh("cpu", (1, 1) if kind == "one-device" else (2, 2), mesh_dim_names=("data", "model"))
    first, second = torch.randn(8, 8), torch.randn(8, 8)
    is_wrong = kind == "wrong-shard" or (kind, rank) == ("one-wrong-shard", RECEIVER)
    size, place = mesh.size(1), mesh.get_local_rank("model")
    local = first.chunk(size, 1 if is_wrong else 0)[place].reshape(8 // size, 8).clone()
    weights = [
        DTensor.from_local(local, mesh, [Replicate(), Shard(0)]),
        distribute_tensor(second, mesh, [Replicate(), Shard(1)]),
    ]

    def step(number: int) -> None:
        torch.manual_seed(number)
        inputs = distribute_tensor(torch.randn(4, 8), mesh, [Shard(0), Replicate()])
        hidden = torch.relu(torch.nn.functional.linear(inputs, weights[0]))
        torch.nn.functional.linear(hidden, weights[1]).redistribute(mesh, [Shard(0), Replicate()]).tanh()

    return step


def pipeline(kind: str, folder: Path, rank: int) -> Step:
    """Two micro batches in each step, through one buffer that sender and receiver use again and again.

    overwritten  in step 1 SENDER puts the second micro batch into the buffer before the first one has left
    stale        in step 1 RECEIVER uses the buffer before the second micro batch is there
    both-ways    stages send to each other first, and wait for both then
    """
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pipeline", "data"))
    group = mesh.get_group("pipeline")
    layer = nn.Linear(8, 8)
    buffer = torch.zeros(16, 8)
    signals = dist.FileStore(f"{folder}/signals", RANKS)

    def send(number: int) -> None:
        works: list[dist.Work] = []
        for micro in range(2):
            is_hasty = (kind, number, rank) == ("overwritten", 1, SENDER)
            while works and not is_hasty:
                works.pop().wait()
            torch.manual_seed(100 * number + 10 * micro + rank)
            buffer.copy_(layer(torch.randn(16, 8)).detach())
            if is_hasty and micro == 1:
                signals.set("overwritten", "yes")
            if (kind, number, rank, micro) == ("stale", 1, SENDER, 1):
                signals.wait(["used"])
            works.append(dist.isend(buffer, RECEIVER_OF[rank], group=group))
        for work in works:
            work.wait()

    def receive(number: int) -> None:
        source = next(one for one, other in RECEIVER_OF.items() if other == rank)
        for micro in range(2):
            if (kind, number, rank, micro) == ("overwritten", 1, RECEIVER, 0):
                signals.wait(["overwritten"])
            work = dist.irecv(buffer, source, group=group)
            assert work is not None
            is_hasty = (kind, number, rank, micro) == ("stale", 1, RECEIVER, 1)
            if not is_hasty:
                work.wait()
            layer(buffer)
            if is_hasty:
                signals.set("used", "yes")
                work.wait()

    def exchange(number: int) -> None:
        peer = RECEIVER_OF.get(rank, rank - 2)
        big = torch.full((1_000_000,), float(rank))
        other = torch.empty_like(big)
        pairs = [dist.P2POp(dist.isend, big, peer, group), dist.P2POp(dist.irecv, other, peer, group)]
        for work in dist.batch_isend_irecv(pairs):
            work.wait()
        assert float((other + 0).sum()) == peer * 1_000_000.0
        # One that no operator reads afterwards.
        tail = torch.zeros(3)
        dist.send(torch.full((3,), 7.0), peer, group) if rank < 2 else dist.recv(tail, peer, group)

    if kind == "both-ways":
        return exchange
    return _OneModule(layer, send if rank in RECEIVER_OF else receive)


class _OneModule(nn.Module):
    """A step as one module, which is one iteration: the layer alone runs twice in it."""

    def __init__(self, layer: nn.Module, step: Step) -> None:
        super().__init__()
        self.layer = layer
        self._step = step

    def forward(self, number: int) -> None:
        self._step(number)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
