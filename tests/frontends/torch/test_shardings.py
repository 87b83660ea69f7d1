"""What layout.json says of the arguments of compiled models, in a job of one process, whose replicas are itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
distributed = pytest.importorskip("torch.distributed")

import msdump  # noqa: E402
from msdump.formats.sharding_json import REPLICATE, SHARD, RankSharding, TensorSharding  # noqa: E402
from msdump.tensors.records import INPUT, OUTPUT  # noqa: E402
from tests.frontends.torch.dumping import close, configure, tensors  # noqa: E402
from tests.frontends.torch.scenarios import quiet  # noqa: E402
from tests.frontends.torch.test_taps import has_compiler  # noqa: E402

pytestmark = [
    pytest.mark.skipif(not distributed.is_available(), reason="this PyTorch has no distributed package"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]
each_backend = pytest.mark.parametrize(
    "backend", ["msdump", pytest.param("msdump-inductor", marks=[has_compiler, pytest.mark.slow])]
)
fresh = pytest.fixture(autouse=True)(quiet)


@pytest.fixture(autouse=True, scope="module")
def job() -> Iterator[None]:
    """One for all tests: PyTorch keeps what it knows of a mesh longer than its process group."""
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


class Layer(torch.nn.Module):
    """A layer of the script's own: Dynamo leaves out modules of PyTorch that a wrapper calls."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(outputs, inputs))

    def forward(self, x: Any) -> Any:
        return x @ self.weight.T


class Net(torch.nn.Module):
    def __init__(self, layer: Any = Layer) -> None:
        super().__init__()
        self.up, self.down = layer(4, 6), layer(6, 2)
        self.register_buffer("scale", torch.tensor(2.0))

    def forward(self, x: Any) -> Any:
        return self.down(torch.relu(self.up(x))) * self.scale


def trained(root: Path, model: Any, x: Any) -> RankSharding:
    """Two steps of a compiled model; what layout.json says afterwards."""
    for _ in range(2):
        model(x).square().mean().backward()
    assert close().error is None
    return msdump.open(root, strict=True).layouts[0]


def kinds(sharding: RankSharding) -> dict[tuple[str, str, int], list[str]]:
    """(name without its scope, io, slot) -> kinds of placements, of the graph that runs forward."""
    return {
        (operand.name.rpartition("/")[2], operand.io, operand.slot): [each.kind for each in operand.sharding.placements]
        for operand in sharding.operands
        if operand.graph_id == 0 and isinstance(operand.sharding, TensorSharding)
    }


def is_outside(model: Any, backend: str) -> Any:
    return torch.compile(torch.nn.parallel.DistributedDataParallel(model), backend=backend)


def is_inside(model: Any, backend: str) -> Any:
    return torch.nn.parallel.DistributedDataParallel(torch.compile(model, backend=backend))


@each_backend
@pytest.mark.parametrize("wrapped", [is_outside, is_inside])
def test_replicas_of_ddp(wrapped: Any, backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parameters and what reads them are copies; buffers, inputs and gradients before their reduction are not."""
    root = configure(tmp_path, monkeypatch)
    found = kinds(trained(root, wrapped(Net(), backend), torch.ones(3, 4)))
    assert {name for name, io, _ in found if io == OUTPUT} == {"up.weight", "down.weight"}
    assert {name.partition("-")[0] for name, io, _ in found if io == INPUT} == {"aten.permute.default"}
    assert all(placements == [REPLICATE] for placements in found.values())


def test_a_saved_parameter_is_a_copy_in_the_backward_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Scaled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.factor = torch.nn.Parameter(torch.ones(4))

        def forward(self, x: Any) -> Any:
            return x * self.factor

    root = configure(tmp_path, monkeypatch)
    x = torch.ones(3, 4, requires_grad=True)
    sharding = trained(root, is_outside(Scaled(), "msdump"), x)
    read = {(operand.graph_id, operand.io) for operand in sharding.operands if "aten.mul" in operand.name}
    assert read == {(0, INPUT), (1, INPUT)}


def test_what_fsdp_has_gathered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsdp = pytest.importorskip("torch.distributed.fsdp")
    if not hasattr(fsdp, "fully_shard"):
        pytest.skip("this PyTorch has FSDP2 under another name")
    root = configure(tmp_path, monkeypatch)
    mesh = distributed.device_mesh.init_device_mesh("cpu", (1, 1), mesh_dim_names=("copies", "shards"))
    net = Net()
    fsdp.fully_shard(net, mesh=mesh)
    found = kinds(trained(root, torch.compile(net, backend="msdump"), torch.ones(3, 4)))
    assert {name for name, io, _ in found if io == OUTPUT} == {"up.weight", "down.weight"}
    assert all(placements == [REPLICATE, REPLICATE] for placements in found.values())


@each_backend
def test_parameters_of_a_tensor_parallel_model(backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """AOT Autograd hands its graphs what is inside of DTensors, which may be several arguments: names stay right."""
    parallel = pytest.importorskip("torch.distributed.tensor.parallel")
    root = configure(tmp_path, monkeypatch)
    mesh = distributed.device_mesh.init_device_mesh("cpu", (1,), mesh_dim_names=("tp",))
    plan = {"up": parallel.ColwiseParallel(), "down": parallel.RowwiseParallel()}
    net = parallel.parallelize_module(Net(torch.nn.Linear), mesh, plan)
    sharding = trained(root, torch.compile(net, backend=backend), torch.ones(3, 4))
    shapes = {name: array.shape for (name, *_), array in tensors(root / "rank_0/Net/0/1").items() if "aten" not in name}
    expected = {name: tuple(each.shape) for name, each in net.named_parameters()}
    assert {name.removeprefix("Parameter."): shape for name, shape in shapes.items()} == {
        **expected, "x": (3, 4), "scale": ()
    }  # fmt: skip
    found = kinds(sharding)
    placed = {name: found[name, OUTPUT, 0] for name in expected}
    assert placed == {"up.weight": [SHARD], "up.bias": [SHARD], "down.weight": [SHARD], "down.bias": [REPLICATE]}
