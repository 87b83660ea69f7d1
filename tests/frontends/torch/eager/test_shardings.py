"""layout.json of a job of two processes: shards, replicas and terms of sums are what it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import msdump  # noqa: E402
from msdump.formats.sharding_json import Placement, TensorSharding  # noqa: E402
from msdump.tensors.arrays import Array  # noqa: E402

ROOT = Path(__file__).resolve().parents[4]
RANKS = 2
pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="this PyTorch has no distributed package")


def run(kind: str, folder: Path, **common: Any) -> msdump.DumpDir:
    """The dump of a job of two processes that do what `layout_rank` says of `kind`."""
    settings = {
        "dump_mode": 0, "path": str(folder / "dump"), "net_name": "Net", "iteration": "all", "saved_data": "tensor",
        "input_output": 0, "kernels": [], "support_device": [0, 1], "op_debug_mode": 0, "file_format": "npy", **common,
    }  # fmt: skip
    engine = {"enable": not kind.endswith("-async"), "trans_flag": True}
    (folder / "dump.json").write_text(json.dumps({"common_dump_settings": settings, "e2e_dump_settings": engine}))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.frontends.torch.eager.layout_rank", kind, str(folder)]
    jobs = [
        subprocess.Popen(
            [*command, str(rank), str(RANKS)], cwd=ROOT, env=environment, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )
        for rank in range(RANKS)
    ]  # fmt: skip
    try:
        for job in jobs:
            output, _ = job.communicate(timeout=240)
            assert job.returncode == 0, output
    finally:
        for job in jobs:
            job.kill()
            job.wait()
    return msdump.open(folder / "dump", strict=True)


def known(dump: msdump.DumpDir) -> Iterator[tuple[Any, TensorSharding]]:
    """The tensors of a dump whose layout is known."""
    shardings = dump.layouts
    for tensor in dump.tensors():
        name = tensor.full_name or tensor.op_name
        sharding = shardings[tensor.rank_id].find(tensor.graph_id, name, tensor.io, tensor.slot, tensor.iteration)
        if sharding is not None:
            yield tensor, sharding


def operands(dump: msdump.DumpDir) -> dict[tuple[Any, ...], dict[int, tuple[Array, TensorSharding]]]:
    """What each rank holds of one operand, by (graph, iteration, name, io, slot)."""
    found: dict[tuple[Any, ...], dict[int, tuple[Array, TensorSharding]]] = {}
    for tensor, sharding in known(dump):
        place = tensor.graph_id, tensor.iteration, tensor.full_name or tensor.op_name, tensor.io, tensor.slot
        found.setdefault(place, {})[tensor.rank_id] = tensor.load().copy(), sharding
    return found


def joined(parts: dict[int, tuple[Array, TensorSharding]]) -> Array:
    """The whole tensor of which each rank holds a block."""
    shape = parts[0][1].shape
    whole = np.full(shape, np.nan, parts[0][0].dtype)
    for rank, (array, sharding) in parts.items():
        block = sharding.block(rank)
        assert block is not None and sharding.shape == shape
        whole[block] = array
    assert not np.isnan(whole).any()
    return whole


def test_a_rank_says_where_it_is(tmp_path: Path) -> None:
    shardings = run("ddp", tmp_path, saved_data="statistic").layouts
    assert sorted(shardings) == [0, 1]
    for rank, sharding in shardings.items():
        assert (sharding.rank, sharding.rank_count, sharding.host) == (rank, RANKS, os.uname().nodename)
        assert [group.ranks for group in sharding.groups] == [(0, 1)]
        assert all(mesh.coordinates_of(rank) == mesh.coordinates == (rank,) for mesh in sharding.meshes)


@pytest.mark.parametrize("kind", ["ddp", "ddp-async"])
def test_replicas_hold_equal_bytes(kind: str, tmp_path: Path) -> None:
    """Parameters, reduced gradients and results of the optimizer; what each rank computes alone has no layout."""
    dump = run(kind, tmp_path)
    found = operands(dump)
    roles = {(graph, name.rsplit("/", 1)[-1], io) for graph, _, name, io, _ in found}
    assert {(0, f"module.{name}", "output") for name in ("0.weight", "0.bias", "2.weight", "2.bias")} <= roles
    assert any("allreduce" in name and io == "output" for _, name, io in roles)
    for parts in found.values():
        assert sorted(parts) == [0, 1]
        assert all(sharding.placements == (Placement("replicate"),) for _, sharding in parts.values())
        assert all(sharding.equal_ranks == (0, 1) and not sharding.is_partial for _, sharding in parts.values())
        assert parts[0][0].tobytes() == parts[1][0].tobytes()
        assert parts[0][0].shape == parts[0][1].shape
    # Gradients that the optimizer reads, of which each rank had another one before.
    gradients = [key for key in found if key[0] == 2 and key[3] == "input"]
    assert len(gradients) >= 8
    alone = {tensor.op_name for tensor in dump.tensors(graph=0, op_type="aten_addmm_default", io="output")}
    assert alone and not alone & {name.rsplit("/", 1)[-1] for _, _, name, io, _ in found if io == "output"}


def test_what_a_constructor_made_equal_must_stay_so(tmp_path: Path) -> None:
    found = operands(run("bypassed", tmp_path))
    weights = {key[1]: parts for key, parts in found.items() if key[2] == "0.weight" and key[0] == 0}
    assert weights[0][0][1].equal_ranks == (0, 1)
    assert [np.array_equal(parts[0][0], parts[1][0]) for parts in weights.values()] == [True, False]


@pytest.mark.parametrize("kind", ["fsdp", "fsdp-async"])
def test_shards_make_the_whole_parameter(kind: str, tmp_path: Path) -> None:
    found = operands(run(kind, tmp_path))
    truth = torch.load(tmp_path / "truth_0.pt")
    for step in range(2):
        for name, values in truth.items():
            # The optimizer writes in place: the last thing that it reads of a parameter is what the forward pass had.
            reads = [
                parts
                for (graph, iteration, _, io, _), parts in found.items()
                if (graph, iteration, io) == (2, step, "input") and parts[0][1].shape == tuple(values[step].shape)
            ]
            assert any(np.array_equal(joined(parts), values[step].numpy()) for parts in reads), name
    whole = [key for key, parts in found.items() if parts[0][1].placements == (Placement("replicate"),)]
    for key, parts in found.items():
        if parts[0][1].mesh.names == ("data",) and key not in whole:
            assert parts[0][1].placements == (Placement("shard", 0),)
            assert parts[0][1].equal_ranks == (0,) and parts[1][1].equal_ranks == (1,)
    # What was gathered is read in the forward pass, from the second step on, and never by the optimizer.
    gathered_reads = {key for key in whole if found[key][0][1].mesh.names == ("data",)}
    assert {(graph, step, io) for graph, step, _, io, _ in gathered_reads} == {(0, 1, "input")}
    for key in gathered_reads:
        assert found[key][0][1].equal_ranks == (0, 1) and found[key][0][0].tobytes() == found[key][1][0].tobytes()
    gathered = [parts for (*_, name, io, _), parts in found.items() if "allgather" in name and io == "output"]
    assert gathered and all(parts[0][0].tobytes() == parts[1][0].tobytes() for parts in gathered)


def test_placements_of_a_mesh_of_two_axes(tmp_path: Path) -> None:
    found = operands(run("mesh", tmp_path))
    by_name = {
        (name.rsplit("/", 1)[-1], io, slot): parts for (_, step, name, io, slot), parts in found.items() if not step
    }
    left, right = by_name["aten.mm.default-op0", "input", 0], by_name["aten.mm.default-op0", "input", 1]
    total = by_name["aten.mm.default-op0", "output", 0]
    mesh = left[1][1].mesh
    assert (mesh.names, mesh.sizes, mesh.ranks, mesh.coordinates) == (("data", "model"), (2, 1), (0, 1), (1, 0))
    assert left[0][1].placements == (Placement("shard", 1), Placement("replicate"))
    assert right[0][1].placements == (Placement("shard", 0), Placement("shard", 1))
    assert total[0][1].placements[0] == Placement("partial", operation="sum") and total[0][1].is_partial
    a, b = np.arange(20.0, dtype=np.float32).reshape(4, 5), np.arange(15.0, dtype=np.float32).reshape(5, 3)
    np.testing.assert_array_equal(joined(left), a)
    np.testing.assert_array_equal(joined(right), b)
    np.testing.assert_array_equal(total[0][0] + total[1][0], a @ b)
    result = by_name["aten.add.Tensor-op0", "output", 0]
    assert result[0][1].equal_ranks == (0, 1)
    np.testing.assert_array_equal(result[1][0], a @ b + 1)


def test_a_compiled_model_has_layouts_too(tmp_path: Path) -> None:
    found = operands(run("compiled", tmp_path))
    (cut,) = [parts for (_, step, name, _, _), parts in found.items() if name.endswith("weight") and not step]
    assert cut[0][1].placements == (Placement("shard", 0),) and cut[0][1].mesh.names == ("model",)
    np.testing.assert_array_equal(joined(cut), np.arange(10.0, dtype=np.float32).reshape(5, 2))
    sums = [parts for (*_, name, io, _), parts in found.items() if "all_reduce" in name and io == "output"]
    assert len(sums) == 2 and all(parts[0][0].tobytes() == parts[1][0].tobytes() for parts in sums)


def test_shards_of_copies(tmp_path: Path) -> None:
    found = operands(run("hybrid", tmp_path))
    parts = [each for (graph, _, _, io, _), each in found.items() if graph == 2 and io == "input"]
    mixed = [each for each in parts if each[0][1].mesh.names == ("copies", "shards")]
    assert mixed
    for each in mixed:
        assert each[0][1].placements == (Placement("replicate"), Placement("shard", 0))
        assert each[0][1].equal_ranks == (0, 1) and each[0][0].tobytes() == each[1][0].tobytes()


def test_gradients_that_are_not_reduced_have_no_layout(tmp_path: Path) -> None:
    found = operands(run("waiting", tmp_path))
    read = {
        step: [each for (graph, number, _, io, _), each in found.items() if (graph, number, io) == (2, step, "input")]
        for step in (0, 1)
    }
    assert not read[0] and len(read[1]) >= 4
    assert all(each[0][0].tobytes() == each[1][0].tobytes() for each in read[1])
