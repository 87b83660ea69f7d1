"""A job of two processes: trains a layer on its half of the rows under a dump, tries the collective operators, and
writes what came of it to `{folder}/result_{rank}.json`.

Usage: python -m tests.mindspore.data_parallel_job FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import msdump.mindspore as ms
from msdump.mindspore import Tensor, communication, nn, ops
from msdump.tensors.arrays import Array

RATE, STEPS = 0.1, 3


def data() -> tuple[Array, Array]:
    """All rows and their targets."""
    rows = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
    return rows, rows[:, :2] * 2


def trained(rows: Array, targets: Array, is_parallel: bool) -> list[Array]:
    """Weight and bias after some steps of the mean loss over the rows."""
    ms.reset_auto_parallel_context()
    if is_parallel:
        ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
    weight = Tensor(np.full((2, 4), 0.5, np.float32))
    net = nn.Dense(4, 2, weight_init=weight, bias_init="zeros")
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), RATE, 0.9))
    for _ in range(STEPS):
        step(Tensor(rows), Tensor(targets))
    return [net.weight.asnumpy(), net.bias.asnumpy()]


def collectives(rank: int) -> dict[str, Any]:
    """What each operator gave this process."""
    x = Tensor(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32) * (rank + 1))
    communication.create_group("both", [0, 1])
    results = {
        "sum": ops.AllReduce()(x),
        "max": ops.AllReduce(ops.ReduceOp.MAX, "both")(x),
        "half": ops.AllReduce()(x.astype(ms.bfloat16)).astype(ms.float32),
        "gather": ops.AllGather()(x),
        "scatter": ops.ReduceScatter()(x),
        "broadcast": ops.Broadcast(1)((x,))[0],
        "exchange": ops.AlltoAll(2, 0, 1)(x),
        "flags": ops.AllGather()(Tensor(np.array([rank == 1]))),
        "gradient": ms.grad(lambda a: (ops.AllReduce()(a) * a).sum())(x),
    }
    ops.Barrier()()
    if rank == 0:
        ops.Send(7, 1)(x)
    else:
        results["received"] = ops.Receive(7, 0, (2, 2), ms.float32)(x)
    communication.destroy_group("both")
    return {name: tensor.asnumpy().tolist() for name, tensor in results.items()}


def main(folder: Path) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    communication.init()
    rank, size = communication.get_rank(), communication.get_group_size()
    rows, targets = data()
    mine = slice(rank * 2, rank * 2 + 2)
    result: dict[str, Any] = {
        "rank": rank,
        "size": size,
        "trained": [array.tolist() for array in trained(rows[mine], targets[mine], is_parallel=True)],
    }
    ms.set_context(mode=ms.PYNATIVE_MODE)
    result["collectives"] = collectives(rank)
    communication.release()
    result["alone"] = communication.GlobalComm.INITED
    (folder / f"result_{rank}.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
