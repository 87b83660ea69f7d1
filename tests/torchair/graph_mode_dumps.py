"""Compiled graphs that dump_config dumps: what lies on disk, and what each graph computes, operator by operator."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import fx

import msdump.torchair as torchair
from msdump.formats.bin import read_bin
from msdump.frontends.torch.convert import array_of
from msdump.process import sessions
from msdump.tensors.arrays import Array
from msdump.torchair.ge.graph import GeGraph
from msdump.torchair.ge.program import GeModule

RANK = "worldsize1_global_rank0"
_FOLDER = re.compile(r"[0-9]{14}/0/(?P<graph>[^/]+)/(?P<model_id>[0-9]+)/(?P<index>[0-9]+)")

# (graph, data_index) -> names of operators, as `{type}.{name}`.
Tree = dict[tuple[str, int], set[str]]


class Net(torch.nn.Module):
    """A product, a relu, and a buffer that the model writes."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.total: torch.Tensor
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.linear(x)) * 2
        self.total.add_(y.detach().sum(0))
        return y.sum()


def backend(path: Path | None, **options: Any) -> Any:
    """`options` of dump_config; the dump goes to `path`."""
    config = torchair.CompilerConfig()
    if path is not None:
        config.dump_config.enable_dump = True
        config.dump_config.dump_path = str(path)
    for name, value in options.items():
        setattr(config.dump_config, name, value)
    return torchair.get_npu_backend(compiler_config=config)


def steps(function: Callable[..., Any], count: int = 2, rows: int = 5) -> list[Any]:
    """Losses of some steps of a training, each on inputs of its own."""
    found = []
    for seed in range(count):
        x = torch.randn(rows, 4, generator=torch.Generator().manual_seed(seed))
        loss = function(x)
        loss.backward()
        found.append(loss.detach())
    return found


def files(path: Path) -> dict[tuple[str, int], list[Path]]:
    """Files of each graph and data_index, in the order of their time stamps. Every folder has the name it must have."""
    found: dict[tuple[str, int], list[Path]] = {}
    for file in (path / RANK).rglob("*"):
        if file.is_file():
            match = _FOLDER.fullmatch(file.parent.relative_to(path / RANK).as_posix())
            assert match is not None, file
            assert match["graph"] == f"graph_{match['model_id']}"
            found.setdefault((match["graph"], int(match["index"])), []).append(file)
    for of_folder in found.values():
        of_folder.sort(key=lambda file: int(file.name.split(".")[4]))
    return found


def tree(path: Path) -> Tree:
    """The graphs renumbered from 0: the process counts on from test to test."""
    found = files(path)
    names = sorted({graph for graph, _ in found}, key=lambda name: int(name[6:]))
    return {
        (f"graph_{names.index(graph)}", index): {".".join(file.name.split(".")[:2]) for file in of_folder}
        for (graph, index), of_folder in found.items()
    }


def values(of_folder: list[Path]) -> dict[tuple[str, str, int], Array]:
    """(operator, "input" or "output", slot) -> value."""
    return {
        (file.name.split(".")[1], tensor.io, tensor.slot): tensor.array()
        for file in of_folder
        for tensor in read_bin(file).tensors
    }


def computed(graph: GeGraph, args: list[Any]) -> tuple[dict[tuple[str, int], Array], list[Any]]:
    """(operator, output) -> value, and what the graph returns; one operator after the other, on copies of `args`."""
    module = GeModule(graph)
    run = _Recording(module)
    returned = run.run(*[arg.clone() if isinstance(arg, torch.Tensor) else arg for arg in args])
    found = {}
    for op in graph.ops:
        made = run.made.get(getattr(module.nodes.get(op), "name", None))
        for index, one in enumerate(made if isinstance(made, (list, tuple)) else [made]):
            if isinstance(one, torch.Tensor):
                found[op.name, index] = array_of(one)
    return found, list(returned)


class _Recording(fx.Interpreter):
    """Keeps a copy of every value as it was right after it was made."""

    def __init__(self, module: GeModule) -> None:
        holder = torch.nn.Module()
        for node in module.graph.nodes:
            if node.op == "get_attr":
                setattr(holder, str(node.target), getattr(module, str(node.target)))
        super().__init__(holder, graph=module.graph)
        self.made: dict[str | None, Any] = {}

    def run_node(self, n: fx.Node) -> Any:
        result = super().run_node(n)
        parts = [part.clone() if isinstance(part, torch.Tensor) else part for part in _flat(result)]
        self.made[n.name] = parts if isinstance(result, (list, tuple)) else parts[0]
        return result


def _flat(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def net(path: Path | None, **options: Any) -> tuple[Net, Any]:
    """A model with the same numbers each time, and what runs it compiled."""
    torch.manual_seed(0)
    model = Net()
    return model, torch.compile(model, backend=backend(path, **options))


def dumped(path: Path, count: int = 2, **options: Any) -> Tree:
    """What a short training leaves."""
    steps(net(path, **options)[1], count)
    sessions.close_all()
    return tree(path)
