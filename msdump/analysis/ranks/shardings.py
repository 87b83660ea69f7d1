"""Where the sharding of a tensor comes from: layout.json, and what the user says where that says nothing."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import numpy as np

from msdump.analysis.ranks.dims import Dims, MeshSizes, parse_dims, parse_mesh
from msdump.errors import ConfigError
from msdump.formats.sharding_json import REPLICATE, SHARD, Mesh, Placement, RankSharding, TensorSharding
from msdump.formats.strategy_file import ParameterStrategy, read_strategy
from msdump.tensors.records import INPUT, OUTPUT

_OPERAND = re.compile(rf"(?P<name>.+?)(?::(?P<io>{INPUT}|{OUTPUT})(?::(?P<slot>[0-9]{{1,6}}))?)?", re.DOTALL)
_PARAMETER = "Parameter."


@dataclass(frozen=True, slots=True)
class DimsRule:
    """Dims of the tensors that a pattern matches.   slot: None is every one"""

    pattern: str
    io: str
    slot: int | None
    dims: Dims

    def matches(self, name: str, io: str, slot: int) -> bool:
        if io != self.io or self.slot not in (None, slot):
            return False
        return any(fnmatchcase(form, self.pattern) for form in (name, name.rsplit("/", 1)[-1]))


@dataclass(frozen=True, slots=True)
class ShardingRules:
    """What the user says of shardings. The first rule that matches holds, strategies before dims."""

    mesh: MeshSizes | None = None
    dims: tuple[DimsRule, ...] = ()
    strategies: Mapping[str, tuple[ParameterStrategy, ...]] = field(default_factory=dict)

    def find(self, rank: int, name: str, io: str, slot: int, shape: tuple[int, ...]) -> TensorSharding | None:
        """Sharding of a tensor of which a rank holds a part of a shape.   Raises: ConfigError for a wrong rule."""
        if io == OUTPUT and slot == 0:
            for strategy in self.strategies.get(name.removeprefix(_PARAMETER), ()):
                found = strategy_sharding(strategy, rank, shape)
                if found is not None:
                    return found
        for rule in self.dims:
            if rule.matches(name, io, slot):
                assert self.mesh is not None
                return rule.dims.sharding(self.mesh, rank, shape)
        return None


def sharding_rules(
    mesh: str | None = None, dims: Sequence[str] = (), strategies: Sequence[str | os.PathLike[str]] = ()
) -> ShardingRules | None:
    """Rules of the command line; None where there are none.

    dims        "PATTERN=DIMS" each; PATTERN is a glob of names, ":input", ":output" or ":output:1" behind it
    strategies  files of MindSpore, one for each stage, or merged
    Raises:     ConfigError; FormatError for a strategy file that cannot be read.
    """
    if bool(mesh) != bool(dims):
        raise ConfigError("--mesh, --dims: expected both, got one of them. Dims name axes of the mesh.")
    sizes = parse_mesh(mesh) if mesh else None
    rules = []
    for text in dims:
        pattern, equals, value = text.partition("=")
        match = _OPERAND.fullmatch(pattern.strip())
        if not equals or match is None or sizes is None:
            raise ConfigError(f"--dims: expected PATTERN=DIMS such as '*/MatMul-op*=b s h[tp]', got '{text}'.")
        slot = None if match["slot"] is None else int(match["slot"])
        rules.append(DimsRule(match["name"], match["io"] or OUTPUT, slot, parse_dims(value.strip(), sizes)))
    by_name: dict[str, tuple[ParameterStrategy, ...]] = {}
    for path in strategies:
        for strategy in read_strategy(path):
            by_name[strategy.name] = (*by_name.get(strategy.name, ()), strategy)
    return ShardingRules(sizes, tuple(rules), by_name) if rules or by_name else None


def sharding_of(
    known: RankSharding | None,
    rules: ShardingRules | None,
    rank: int | None,
    operand: tuple[int, str, str, int, int],
    shape: tuple[int, ...] | None,
) -> TensorSharding | None:
    """Sharding of a tensor.   operand: graph, name, io, slot and iteration; rules: None, there are none"""
    found = None if known is None else known.find(*operand)
    if found is None and rules is not None and rank is not None and shape is not None:
        _, name, io, slot, _ = operand
        found = rules.find(rank, name, io, slot, tuple(shape))
    return found


def strategy_sharding(strategy: ParameterStrategy, rank: int, shape: tuple[int, ...]) -> TensorSharding | None:
    """Placement of a parameter of which a rank holds a part of this shape; None where the strategy does not define it.

    The parallel optimizer cuts the piece that tensor parallelism has left, so its axis comes last here.
    """
    count = math.prod(strategy.dev_matrix)
    first = strategy.stage * count
    if not strategy.is_even or len(shape) != len(strategy.tensor_map) or not first <= rank < first + count:
        return None
    axes = len(strategy.dev_matrix)
    cut_by = {axes - 1 - axis: dim for dim, axis in enumerate(strategy.tensor_map) if axis >= 0}
    sizes, dims = list(strategy.dev_matrix), [cut_by.get(axis) for axis in range(axes)]
    order = list(range(axes))
    if strategy.shard_size > 1 and shape:
        shared = _optimizer_axis(sizes, dims, strategy)
        if shared is None:
            return None
        dims[shared] = 0
        order = [axis for axis in range(len(sizes)) if axis != shared] + [shared]
    ranks = np.arange(first, first + count).reshape(sizes).transpose(order)
    placements = tuple(Placement(REPLICATE) if dims[axis] is None else Placement(SHARD, dims[axis]) for axis in order)
    whole = list(shape)
    for axis in order:
        dim = dims[axis]
        if dim is not None:
            whole[dim] *= sizes[axis]
    coordinates = tuple(int(number) for number in np.argwhere(ranks == rank)[0])
    names = tuple(f"axis {axis}" for axis in order)
    mesh = Mesh(names, ranks.shape, tuple(int(number) for number in ranks.ravel()), coordinates)
    return TensorSharding(tuple(whole), placements, mesh)


def _optimizer_axis(sizes: list[int], dims: list[int | None], strategy: ParameterStrategy) -> int | None:
    """The axis of the ranks that share a parameter of the optimizer; a longer one is split in two, in place."""
    for axis, size in enumerate(sizes):
        step = math.prod(sizes[axis + 1 :])
        if dims[axis] is None and step == strategy.shard_step and size % strategy.shard_size == 0:
            if size == strategy.shard_size:
                return axis
            sizes[axis : axis + 1] = [size // strategy.shard_size, strategy.shard_size]
            dims[axis : axis + 1] = [None, None]
            return axis + 1
    return None
