"""`mindspore.communication`: what launchers say, a process that is alone, and a job of two processes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.errors import ConfigError, ExecutionError
from msdump.mindspore import Tensor, communication, nn, ops
from msdump.mindspore.communication.launch import Launch
from tests.mindspore import data_parallel_job


@pytest.mark.parametrize(
    ("environ", "launch"),
    [
        ({}, Launch()),
        (
            {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "MASTER_ADDR": "host", "MASTER_PORT": "5"},
            Launch(1, 2, 1, "host:5"),
        ),
        (
            {"MS_NODE_ID": "2", "MS_WORKER_NUM": "4", "MS_SCHED_HOST": "host", "MS_ROLE": "MS_WORKER"},
            Launch(2, 4, 0, "host:8118"),
        ),
        (
            {"RANK_ID": "3", "MS_WORKER_NUM": "4", "DEVICE_ID": "1", "MS_SCHED_HOST": "host", "MS_SCHED_PORT": "7"},
            Launch(3, 4, 1, "host:7"),
        ),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, Launch(1, 2, 0, "127.0.0.1:8118")),
        ({"RANK_ID": "3", "RANK_SIZE": "8"}, Launch(3, 8)),
        ({"MS_ROLE": "MS_SCHED", "MS_WORKER_NUM": "2"}, Launch(is_scheduler=True)),
    ],
)
def test_launchers(environ: dict[str, str], launch: Launch) -> None:
    assert Launch.from_environment(environ) == launch


def test_ranks_that_cannot_be_are_refused() -> None:
    with pytest.raises(ConfigError, match="expected a rank below WORLD_SIZE=2, got 2"):
        Launch.from_environment({"RANK": "2", "WORLD_SIZE": "2"})


def test_a_process_that_is_alone_gives_tensors_back(either_mode: int) -> None:
    communication.init()
    x = Tensor([1.0, 2.0])
    for operator in (ops.AllReduce(), ops.AllGather(), ops.ReduceScatter(), ops.AlltoAll(1, 0, 0)):
        assert operator(x).asnumpy().tolist() == [1.0, 2.0]
    assert ops.Broadcast(0)((x,))[0] is x and ops.Barrier()() is None
    reducer = nn.DistributedGradReducer([], mean=True)
    assert reducer((x,))[0].asnumpy().tolist() == [1.0, 2.0]
    communication.create_group("one", [0])
    assert communication.get_group_rank_from_world_rank(0, "one") == 0
    assert communication.get_world_rank_from_group_rank("one", 0) == 0
    communication.destroy_group("one")
    communication.release()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: communication.init("mpi"), RuntimeError, "must be one of 'hccl', 'nccl' and 'mccl'"),
        (lambda: communication.create_group("two", [0, 1]), ValueError, "expected ranks of 0 to 0"),
        (lambda: communication.create_group("", [0]), ValueError, "must be a name of its own"),
        (lambda: communication.get_group_size("two"), ValueError, "Call create_group first"),
        (lambda: communication.destroy_group("hccl_world_group"), ValueError, "does not support destruction"),
        (lambda: ops.AllReduce("mean"), ValueError, "the 'op' must be one of"),
        (lambda: ops.AlltoAll(2, 0, 0)(Tensor([1.0])), ValueError, "must be the 1 processes"),
        (lambda: ops.NeighborExchange([0], [0]), ValueError, "expected Send and Receive or AlltoAll"),
        (lambda: ops.Send(1, 1)(Tensor([1.0])), ExecutionError, "got one process"),
        (lambda: nn.DistributedGradReducer([], degree=0), ValueError, "must be large than 0"),
    ],
)
def test_what_cannot_be_is_refused(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_a_job_without_an_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK_SIZE", "2")
    with pytest.raises(ExecutionError, match="expected the address where the 2 processes meet"):
        communication.init()


def test_the_scheduler_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MS_ROLE", "MS_SCHED")
    with pytest.raises(SystemExit) as ended:
        communication.init()
    assert ended.value.code == 0


def _run_job(folder: Path) -> list[dict[str, Any]]:
    """Start both processes as MindSpore's cluster does; what they wrote."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = folder / "dump.json"
    common = {
        "dump_mode": 0, "path": str(folder / "dump"), "net_name": "Net", "iteration": "0", "input_output": 0,
        "kernels": [], "support_device": [0, 1],
    }  # fmt: skip
    settings = {"enable": True, "trans_flag": False, "saved_data": "tensor"}
    config.write_text(json.dumps({"common_dump_settings": common, "e2e_dump_settings": settings}))
    shared = {name: value for name, value in os.environ.items() if not name.startswith(("MS_", "RANK", "MASTER"))}
    shared |= {"MS_WORKER_NUM": "2", "MS_SCHED_HOST": "127.0.0.1", "MS_SCHED_PORT": str(port), "MS_ROLE": "MS_WORKER"}
    command = [sys.executable, "-m", data_parallel_job.__name__, str(folder)]
    ranks = [
        subprocess.Popen(
            command,
            env={**shared, "MS_NODE_ID": str(rank), "MINDSPORE_DUMP_CONFIG": str(config), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        texts = [process.communicate(timeout=120)[0] for process in ranks]
    finally:
        for process in ranks:
            process.kill()
    assert [process.returncode for process in ranks] == [0, 0], "\n".join(texts)
    return [json.loads((folder / f"result_{rank}.json").read_text()) for rank in range(2)]


def test_two_processes_train_as_one_and_dump_each_to_its_rank(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    results = _run_job(tmp_path)
    ms.set_context(mode=ms.GRAPH_MODE)
    expected = data_parallel_job.trained(*data_parallel_job.data(), is_parallel=False)
    for rank, result in enumerate(results):
        assert (result["rank"], result["size"], result["alone"]) == (rank, 2, False)
        for got, array in zip(result["trained"], expected, strict=True):
            np.testing.assert_allclose(got, array, rtol=1e-5)
        files = [path.name for path in (tmp_path / "dump" / f"rank_{rank}").rglob("*.npy")]
        assert [name for name in files if name.startswith("AllReduce.")] != []
    one, two = (result["collectives"] for result in results)
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    for name, value in {"sum": 3 * x, "max": 2 * x, "half": 3 * x, "gather": np.concatenate([x, 2 * x])}.items():
        assert one[name] == two[name] == value.tolist(), name
    assert (one["scatter"], two["scatter"]) == ([[3, 6]], [[9, 12]])
    assert one["broadcast"] == two["broadcast"] == (2 * x).tolist() and two["received"] == x.tolist()
    assert (one["exchange"], two["exchange"]) == ([[1, 2, 2, 4]], [[3, 4, 6, 8]])
    assert one["flags"] == [False, True]
    # d/da of sum(AllReduce(a) * a): AllReduce(a) + AllReduce(a), as each process holds the sum of its own product.
    assert one["gradient"] == two["gradient"] == (3 * x + 3 * x).tolist()


def test_operators_that_are_cut_into_one_part_stay_as_they_are() -> None:
    product = ops.MatMul()
    assert product.shard(((1, 1), (1, 1)), ((1, 1),)) is product
    with pytest.raises(ValueError, match="expected a strategy of ones"):
        product.shard(((2, 1), (1, 1)))
