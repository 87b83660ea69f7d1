"""A compiled model with a dump, and what lies on disk afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import msdump.torchair as torchair
from msdump.formats.paths.torchair import parse_torchair_name, parse_torchair_path
from msdump.tensors.arrays import Array

# (io, slot) or (io, slot, element) of a value.
Place = tuple[Any, ...]


@dataclass(frozen=True)
class Step:
    """One folder: values by node and place, targets and time stamps by node, and the lines of skipped.txt."""

    values: dict[str, dict[Place, Array]]
    targets: dict[str, str]
    timestamps: dict[str, set[int]]
    skipped: list[str]


def config_for(path: Path, node_filter: Callable[[Any], Any] | None = None) -> Any:
    config = torchair.CompilerConfig()
    config.debug.data_dump.type = "npy"
    config.debug.data_dump.path = str(path)
    if node_filter is not None:
        config.debug.data_dump.filter = node_filter
    return config


def backend_for(path: Path, node_filter: Callable[[Any], Any] | None = None) -> Any:
    return torchair.get_npu_backend(compiler_config=config_for(path, node_filter))


def read_steps(path: Path, rank_folder: str = "worldsize1_global_rank0") -> list[list[Step]]:
    """Steps of each graph, graphs in the order of their numbers, which a whole process shares."""
    graphs = sorted((path / rank_folder).glob("graph_*"), key=lambda folder: int(folder.name[6:]))
    found = []
    for graph in graphs:
        steps = sorted(graph.iterdir(), key=lambda folder: int(folder.name))
        assert all(parse_torchair_path((step / "x").relative_to(path)) for step in steps)
        found.append([read_step(step) for step in steps])
    return found


def read_step(folder: Path) -> Step:
    step = Step({}, {}, {}, [])
    for file in sorted(folder.iterdir()):
        if file.name == "skipped.txt":
            step.skipped.extend(file.read_text().splitlines())
            continue
        name = parse_torchair_name(file.name)
        assert name is not None, file
        place = (name.io, name.slot) if name.element is None else (name.io, name.slot, name.element)
        step.values.setdefault(name.node, {})[place] = np.load(file)
        step.targets[name.node] = name.target
        step.timestamps.setdefault(name.node, set()).add(name.timestamp_us)
    return step
