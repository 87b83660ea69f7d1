"""Shardings as text: `b s[cp] h[tp]` says of each dimension of a tensor which axes of the mesh cut it.

Source: the dims strings of SGLang's dump comparator, so that annotations can be shared.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from msdump.errors import ConfigError, did_you_mean
from msdump.formats.sharding_json import PARTIAL, REPLICATE, SHARD, Mesh, Placement, TensorSharding

# Its ranks compute with data of their own unless a string says something else.
DATA_AXIS = "dp"
_MAX_RANKS = 1 << 22
_DIM = re.compile(r"(?P<name>1|[A-Za-z_]\w*|\([^()]+\))(?:\[(?P<axes>[^\[\]]+)\])?")
_AXIS = re.compile(r"([A-Za-z_]\w*)=([0-9]{1,7})")


@dataclass(frozen=True, slots=True)
class MeshSizes:
    """Axes of a job and their sizes; ranks count from 0 with the last axis running fastest."""

    axes: tuple[tuple[str, int], ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.axes)

    @property
    def rank_count(self) -> int:
        return math.prod(size for _, size in self.axes)

    def size(self, name: str) -> int:
        return dict(self.axes)[name]


@functools.lru_cache(maxsize=1024)
def part_of_mesh(mesh: MeshSizes, rank: int, axes: tuple[str, ...]) -> Mesh:
    """The mesh of these axes that a rank is in; along all others its ranks have the coordinates of this one.

    axes    in the order of the mesh
    Raises: ConfigError for a rank that the mesh does not have.
    """
    if rank >= mesh.rank_count:
        raise ConfigError(
            f"--mesh: expected sizes of a job that has rank {rank}, got {mesh.rank_count} ranks. Correct the sizes."
        )
    sizes = tuple(size for _, size in mesh.axes)
    own = tuple(int(coordinate) for coordinate in np.unravel_index(rank, sizes))
    slices = tuple(
        slice(None) if name in axes else coordinate for name, coordinate in zip(mesh.names, own, strict=True)
    )
    ranks = tuple(int(number) for number in np.arange(mesh.rank_count).reshape(sizes)[slices].ravel())
    coordinates = tuple(coordinate for name, coordinate in zip(mesh.names, own, strict=True) if name in axes)
    return Mesh(axes, tuple(mesh.size(name) for name in axes), ranks, coordinates)


def parse_mesh(text: str) -> MeshSizes:
    """Sizes of "dp=2,tp=2", the axis whose ranks are farthest apart first.   Raises: ConfigError."""
    sizes: dict[str, int] = {}
    for part in re.split(r" *, *", text.strip()):
        match = _AXIS.fullmatch(part)
        if match is None or match[1] in sizes or int(match[2]) < 1:
            raise ConfigError(f'--mesh: expected axes and their sizes such as dp=2,tp=4, got "{text}". Correct it.')
        sizes[match[1]] = int(match[2])
    if math.prod(sizes.values()) > _MAX_RANKS:
        raise ConfigError(f'--mesh: expected at most {_MAX_RANKS} ranks, got "{text}". Correct it.')
    return MeshSizes(tuple(sizes.items()))


@dataclass(frozen=True, slots=True)
class Dims:
    """A string that was read.

    text        as it was
    cuts        axis -> the dimension that it cuts, zero-based
    sums        axes along which the ranks hold terms of a sum
    replicated  axes that hold copies, as declared
    """

    text: str
    ndim: int
    cuts: Mapping[str, int]
    sums: frozenset[str]
    replicated: frozenset[str]

    def sharding(self, mesh: MeshSizes, rank: int, shape: tuple[int, ...]) -> TensorSharding:
        """Placement of a tensor of which a rank holds a part of this shape.   Raises: ConfigError for another ndim."""
        if len(shape) != self.ndim:
            raise ConfigError(
                f"--dims '{self.text}': expected a tensor of {self.ndim} dimensions, got shape {shape}. "
                "Let the pattern match others."
            )
        named = self.cuts.keys() | self.sums | self.replicated
        axes = tuple(name for name in mesh.names if name in named or name != DATA_AXIS)
        whole = list(shape)
        placements = []
        for name in axes:
            if name in self.cuts:
                whole[self.cuts[name]] *= mesh.size(name)
                placements.append(Placement(SHARD, self.cuts[name]))
            else:
                placements.append(Placement(PARTIAL, operation="sum") if name in self.sums else Placement(REPLICATE))
        return TensorSharding(tuple(whole), tuple(placements), part_of_mesh(mesh, rank, axes))


def parse_dims(text: str, mesh: MeshSizes) -> Dims:
    """Read a string such as "b s (heads*d)[tp] # dp:replicated".

    Edges:  pieces are of equal size, one behind the other: `zigzag` is refused. `dp:=other` is refused, too.
    Raises: ConfigError.
    """
    shape, _, declared = text.partition("#")
    cuts: dict[str, int] = {}
    sums: set[str] = set()
    words = re.findall(r"(?:\([^)]*\)|[^\s(\[])+(?:\[[^\]]*\])?|\S+", shape)
    for number, word in enumerate(words):
        match = _DIM.fullmatch(word)
        if match is None:
            raise _wrong(text, f"dimensions such as b, h[tp] or (heads*d)[tp], got {word!r}")
        for modifier in filter(None, (match["axes"] or "").split(",")):
            axis, _, qualifiers = (part.strip() for part in modifier.partition(":"))
            _check_axis(text, axis, mesh, cuts.keys() | sums)
            for qualifier in filter(None, (one.strip() for one in qualifiers.split("+"))):
                if qualifier not in ("sharded", "natural", "partial"):
                    raise _wrong(text, f"sharded, natural or partial behind {axis}, got {qualifier!r}")
            if "partial" in qualifiers:
                sums.add(axis)
            else:
                cuts[axis] = number
    if not words:
        raise _wrong(text, "the dimensions of a tensor, got none")
    replicated: set[str] = set()
    for word in declared.split():
        axis, _, meaning = word.partition(":")
        if meaning != "replicated":
            raise _wrong(text, f"declarations such as {DATA_AXIS}:replicated behind #, got {word!r}")
        _check_axis(text, axis, mesh, cuts.keys() | sums | replicated)
        replicated.add(axis)
    return Dims(text, len(words), cuts, frozenset(sums), frozenset(replicated))


def _check_axis(text: str, axis: str, mesh: MeshSizes, taken: set[str]) -> None:
    if axis not in mesh.names:
        advice = did_you_mean(axis, mesh.names)
        raise _wrong(text, f"axes of the mesh ({', '.join(mesh.names)}), got {axis!r}", advice)
    if axis in taken:
        raise _wrong(text, f"each axis once, got {axis!r} again")


def _wrong(text: str, problem: str, advice: str = "") -> ConfigError:
    return ConfigError(f"--dims '{text}': expected {problem}. {advice or 'See docs/ranks.md for the form.'}".rstrip())
