"""One rank of a job that records: `python -m tests.engine.recording.rank PATH RING RANK RANKS LAST VICTIM [gloo]`.

All ranks run in step. At the end of step LAST the victim kills itself, and the others wait for it until they are ended.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any


def main(path: Path, ring: Path, rank: int, ranks: int, last: int, victim: int, is_gloo: bool) -> None:
    os.environ["RANK_ID"] = str(rank)
    import msdump

    with ExitStack() as stack:
        step = _gloo_step(path, rank, ranks) if is_gloo else _step(path, rank, ranks, stack)
        block = stack.enter_context(msdump.recorder(path, ring=ring, steps=3, budget="50M"))
        if is_gloo:
            stack.enter_context(msdump.watch())
        for number in range(last + 1):
            result = step(number, -1.0 if number == last and rank == 1 else 1.5)
            if number == last and rank == victim:
                (path / f"reached_{rank}").touch()
                os.kill(os.getpid(), signal.SIGKILL)
            block.step(loss=result)
            if number == last:
                # The step is over, with whatever it has to keep, before anybody ends this process.
                (path / f"reached_{rank}").touch()
                signal.pause()


def _step(path: Path, rank: int, ranks: int, stack: ExitStack) -> Any:
    from tests.engine.recording.programs import program

    run = program("pynative", stack)

    def step(number: int, value: float) -> float:
        (path / f"step_{number}_{rank}").touch()
        while not all((path / f"step_{number}_{other}").exists() for other in range(ranks)):
            time.sleep(0.002)
        return run(value)

    return step


def _gloo_step(path: Path, rank: int, ranks: int) -> Any:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{path}/store", rank=rank, world_size=ranks)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(number: int, value: float) -> float:
        loss = model(torch.log(torch.full((3, 4), value))).square().mean()
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
        return float(loss)

    return step


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *(int(text) for text in sys.argv[3:7]), is_gloo="gloo" in sys.argv)
