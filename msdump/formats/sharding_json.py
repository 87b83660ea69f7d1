"""layout.json: how the tensors of a rank lie over the ranks of its job.

One file for each rank, `rank_N/.dump_metadata/layout.json`, beside the configuration of the dump. Its keys, and what
must be equal by them, are in docs/formats/layout.md.
"""

from __future__ import annotations

import functools
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from msdump.errors import FormatError
from msdump.formats.atomic import make_dirs, write_file
from msdump.formats.paths.parse import safe_text
from msdump.formats.paths.sync import short_op_name
from msdump.storage.files import read_file
from msdump.storage.plain import unreadable
from msdump.tensors.records import INPUT, MAX_NDIM, OUTPUT

LAYOUT_FILE = "layout.json"
VERSION = 1
SHARD, STRIDED, REPLICATE, PARTIAL = "shard", "strided_shard", "replicate", "partial"

_MODE = 0o400
_MAX_AXES = 16
_MAX_RANKS = 1 << 22
_MAX_SIZE = 1 << 62
_MAX_TEXT = 4096
_Operand = TypeVar("_Operand", "Operand", "MessageOperand")
# By graph, a form of the name, io and slot.
_ByOperand: TypeAlias = "dict[tuple[int, str, str, int], list[_Operand]]"
_PLACEMENT = re.compile(
    r"(?P<replicate>replicate)|shard\((?P<dim>[0-9]{1,2})\)"
    r"|strided_shard\((?P<strided>[0-9]{1,2}), (?P<split>[0-9]{1,9})\)"
    r"|partial\((?P<operation>[a-z_0-9]{1,40})\)"
)


@dataclass(frozen=True, slots=True)
class Placement:
    """What one axis of a mesh does to a tensor.

    kind       SHARD: the axis cuts dimension `dim` into pieces as `torch.chunk` does, in the order of the ranks;
               STRIDED: it cuts each of `split` equal parts of that dimension, and a rank holds its piece of all of
               them; REPLICATE: all ranks along it hold the same bytes; PARTIAL: they hold what `operation` makes one
    dim        of the tensor, zero-based; None but for SHARD and STRIDED
    operation  such as "sum"; "" but for PARTIAL
    """

    kind: str
    dim: int | None = None
    split: int = 1
    operation: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Ranks that work together in collectives.   name: of the process group; ranks: of the job, in its order"""

    name: str
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Mesh:
    """Ranks in rows and columns.

    names        of the axes; "" for one without a name
    sizes        how many ranks lie along each axis
    ranks        of the job, the last axis running fastest
    coordinates  of the rank that wrote the file, one for each axis
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    ranks: tuple[int, ...]
    coordinates: tuple[int, ...]

    def coordinates_of(self, rank: int) -> tuple[int, ...]:
        """Raises: ValueError for a rank that is not in the mesh."""
        return self._coordinates_at(self.ranks.index(rank))

    def ranks_like(self, axes: Sequence[int]) -> tuple[int, ...]:
        """Ranks that have the coordinates of the one that wrote the file along these axes, ascending."""
        return _ranks_like(self, tuple(axes))

    def _coordinates_at(self, index: int) -> tuple[int, ...]:
        coordinates: list[int] = []
        for size in reversed(self.sizes):
            index, coordinate = divmod(index, size)
            coordinates.append(coordinate)
        return tuple(reversed(coordinates))


@functools.lru_cache(maxsize=4096)
def _ranks_like(mesh: Mesh, axes: tuple[int, ...]) -> tuple[int, ...]:
    # Thousands of tensors of a rank lie over a few meshes, each of which may have thousands of ranks.
    own = [mesh.coordinates[axis] for axis in axes]
    ranks_and_coordinates = ((rank, mesh._coordinates_at(index)) for index, rank in enumerate(mesh.ranks))
    return tuple(sorted(rank for rank, position in ranks_and_coordinates if [position[axis] for axis in axes] == own))


@dataclass(frozen=True, slots=True)
class TensorSharding:
    """Placement of a tensor over a mesh.   shape: of the whole tensor, in elements; placements: one for each axis"""

    shape: tuple[int, ...]
    placements: tuple[Placement, ...]
    mesh: Mesh

    @property
    def is_partial(self) -> bool:
        """Whether ranks hold terms of the tensor rather than parts of it."""
        return any(placement.kind == PARTIAL for placement in self.placements)

    @property
    def equal_ranks(self) -> tuple[int, ...]:
        """Ranks that must hold the same bytes as the one that wrote the file, itself included, ascending."""
        return self.mesh.ranks_like(
            [axis for axis, placement in enumerate(self.placements) if placement.kind != REPLICATE]
        )

    def block(self, rank: int) -> tuple[slice, ...] | None:
        """Position of a rank's part in the whole tensor.

        Units:  elements of the whole tensor, one slice for each dimension.
        Edges:  an empty slice where there are more ranks than rows; None where the part is no single block (STRIDED).
        Raises: ValueError for a rank that is not in the mesh.
        """
        if any(placement.kind == STRIDED for placement in self.placements):
            return None
        starts, lengths = [0] * len(self.shape), list(self.shape)
        axes = zip(self.placements, self.mesh.sizes, self.mesh.coordinates_of(rank), strict=True)
        for placement, size, coordinate in axes:
            if placement.kind == SHARD:
                assert placement.dim is not None
                length = lengths[placement.dim]
                piece = -(-length // size)
                first = min(coordinate * piece, length)
                starts[placement.dim] += first
                lengths[placement.dim] = min(piece, length - first)
        return tuple(slice(start, start + length) for start, length in zip(starts, lengths, strict=True))


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor of the dump.

    name       full name of the operator, or name of the parameter (whose `io` is "output" and whose `slot` is 0)
    iteration  from which on the sharding holds, until another one of the same operand comes
    sharding     None: from this iteration on nothing is known of it
    """

    graph_id: int
    name: str
    io: str
    slot: int
    iteration: int
    sharding: TensorSharding | None


@dataclass(frozen=True, slots=True)
class Message:
    """What one rank sends to another.

    group     name of the process group that carries it
    source, destination  ranks of the job
    number    how many messages of this group, tag and pair of ranks came before it in its iteration
    """

    group: str
    source: int
    destination: int
    tag: int
    number: int


@dataclass(frozen=True, slots=True)
class MessageOperand:
    """A tensor that is the content of a message: input of a send, output of a receive.

    iteration  from which on it is, until another one of the same operand comes
    misuse     what the program did to the buffer before it had waited for the message; "" nothing wrong
    """

    graph_id: int
    name: str
    io: str
    slot: int
    iteration: int
    message: Message
    misuse: str = ""


def message_row(operand: MessageOperand) -> dict[str, Any]:
    message = operand.message
    return {
        "graph": operand.graph_id,
        "name": operand.name,
        "io": operand.io,
        "slot": operand.slot,
        "iteration": operand.iteration,
        "group": message.group,
        "source": message.source,
        "destination": message.destination,
        "tag": message.tag,
        "number": message.number,
        "misuse": operand.misuse,
    }


@dataclass(frozen=True)
class RankSharding:
    """Content of layout.json.

    rank, rank_count  of the process, and how many the job has; zero-based
    operands          tensors that are parts or copies of others; those that are not here belong to this rank alone,
                      or nothing is known of them
    messages          tensors that are sent to another rank, or received from one
    """

    rank: int
    rank_count: int
    host: str
    groups: tuple[Group, ...] = ()
    meshes: tuple[Mesh, ...] = ()
    operands: tuple[Operand, ...] = ()
    messages: tuple[MessageOperand, ...] = ()
    _by_operand: _ByOperand[Operand] = field(default_factory=dict, compare=False, repr=False)
    _message_by_operand: _ByOperand[MessageOperand] = field(default_factory=dict, compare=False, repr=False)

    def find(self, graph_id: int, name: str, io: str, slot: int, iteration: int = 0) -> TensorSharding | None:
        """Sharding of a tensor; None where none is known.

        name   full name of the operator, its last part, or the form that it has in names of files
        Edges: before the first iteration that is known of an operand its sharding is None.
        """
        found = _latest(self.operands, self._by_operand, (graph_id, name, io, slot), iteration)
        return None if found is None else found.sharding

    def find_message(self, graph_id: int, name: str, io: str, slot: int, iteration: int = 0) -> MessageOperand | None:
        """The message whose content a tensor is; as `find`."""
        return _latest(self.messages, self._message_by_operand, (graph_id, name, io, slot), iteration)


def _latest(
    operands: Sequence[_Operand],
    by_operand: _ByOperand[_Operand],
    operand_key: tuple[int, str, str, int],
    iteration: int,
) -> _Operand | None:
    """The last entry of an operand that holds in an iteration.   by_operand: filled here, by every form of the name"""
    if not by_operand:
        for operand in operands:
            for form in {operand.name, safe_text(operand.name), short_op_name(operand.name)}:
                by_operand.setdefault((operand.graph_id, form, operand.io, operand.slot), []).append(operand)
    known = [entry for entry in by_operand.get(operand_key, ()) if entry.iteration <= iteration]
    return max(known, key=lambda entry: entry.iteration, default=None)


# -- placements as text --------------------------------------------------------------------------------------------


def format_placement(placement: Placement) -> str:
    """Text of a placement: "shard(0)", "strided_shard(0, 2)", "replicate", "partial(sum)"."""
    if placement.kind == SHARD:
        return f"shard({placement.dim})"
    if placement.kind == STRIDED:
        return f"strided_shard({placement.dim}, {placement.split})"
    return REPLICATE if placement.kind == REPLICATE else f"partial({placement.operation})"


def parse_placement(text: str) -> Placement:
    """Inverse of `format_placement`.   Raises: FormatError."""
    match = _PLACEMENT.fullmatch(text)
    if match is None:
        raise FormatError(
            f'placement: expected "shard(0)", "strided_shard(0, 2)", "replicate" or "partial(sum)", got {text[:80]!r}.'
        )
    if match["dim"] is not None:
        return Placement(SHARD, int(match["dim"]))
    if match["strided"] is not None:
        return Placement(STRIDED, int(match["strided"]), split=int(match["split"]))
    return Placement(REPLICATE) if match["replicate"] else Placement(PARTIAL, operation=match["operation"])


# -- writing -------------------------------------------------------------------------------------------------------


def write_sharding(directory: str | os.PathLike[str], sharding: RankSharding) -> None:
    """Write the file of a rank, over an earlier one.   Raises: WriteError."""
    make_dirs(directory)
    write_file(Path(directory) / LAYOUT_FILE, [sharding_text(sharding).encode()], _MODE, replace=True)


def sharding_text(sharding: RankSharding) -> str:
    """Text of the file. Shardings that several tensors share are written once."""
    meshes = dict.fromkeys(sharding.meshes)
    numbers: dict[TensorSharding, int] = {}
    rows = []
    for operand in sharding.operands:
        number = None
        if operand.sharding is not None:
            meshes.setdefault(operand.sharding.mesh)
            number = numbers.setdefault(operand.sharding, len(numbers))
        rows.append(
            {
                "graph": operand.graph_id,
                "name": operand.name,
                "io": operand.io,
                "slot": operand.slot,
                "iteration": operand.iteration,
                "layout": number,
            }
        )
    mesh_number = {mesh: number for number, mesh in enumerate(meshes)}
    head = {"version": VERSION, "rank": sharding.rank, "rank_count": sharding.rank_count, "host": sharding.host}
    tables: dict[str, list[dict[str, Any]]] = {
        "groups": [{"name": group.name, "ranks": group.ranks} for group in sharding.groups],
        "meshes": [
            {"names": mesh.names, "sizes": mesh.sizes, "ranks": mesh.ranks, "coordinates": mesh.coordinates}
            for mesh in meshes
        ],
        "layouts": [
            {
                "shape": number.shape,
                "placements": [format_placement(placement) for placement in number.placements],
                "mesh": mesh_number[number.mesh],
            }
            for number in numbers
        ],
        "tensors": rows,
    }
    if sharding.messages:
        tables["messages"] = [message_row(message) for message in sharding.messages]
    # A line for each row, so that people can read it and tools can compare two.
    lines = [f' "{key}": {json.dumps(value)}' for key, value in head.items()]
    for key, items in tables.items():
        inner = ",\n".join(f"  {json.dumps(item)}" for item in items)
        lines.append(f' "{key}": [\n{inner}\n ]' if items else f' "{key}": []')
    return "{\n" + ",\n".join(lines) + "\n}\n"


# -- reading -------------------------------------------------------------------------------------------------------


def read_sharding(path: str | os.PathLike[str]) -> RankSharding:
    """The file of a rank.   Raises: FormatError for one that is damaged, of a later version, or cannot be read."""
    where = os.fspath(path)
    try:
        return _rank_sharding(json.loads(read_file(path)))
    except _ContentError as error:
        raise FormatError(f"{where}, {error}") from error
    except FormatError:
        raise
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{where}: expected JSON, got something else: {error}.") from error
    except OSError as error:
        raise unreadable(path, error) from error


class _ContentError(FormatError):
    """What is wrong inside of a file, without its name."""


def _rank_sharding(content: Any) -> RankSharding:
    version = _number(content, "version", "the file")
    if version != VERSION:
        raise _ContentError(f"version: expected {VERSION}, got {version}. Read it with the msdump that wrote it.")
    count = _number(content, "rank_count", "the file", 1, _MAX_RANKS)
    groups = [Group(_text(row, "name", where), _ranks(row, where, count)) for where, row in _rows(content, "groups")]
    rank = _number(content, "rank", "the file", 0, count - 1)
    meshes = [_mesh(row, where, rank, count) for where, row in _rows(content, "meshes")]
    shardings = [_sharding(row, where, meshes) for where, row in _rows(content, "layouts")]
    operands = [_operand(row, where, shardings) for where, row in _rows(content, "tensors")]
    host = _text(content, "host", "the file")
    # Earlier versions wrote none.
    rows = _rows(content, "messages") if "messages" in content else []
    messages = [_message_operand(row, where, count) for where, row in rows]
    return RankSharding(rank, count, host, tuple(groups), tuple(meshes), tuple(operands), tuple(messages))


def _mesh(row: Any, where: str, rank: int, rank_count: int) -> Mesh:
    names = _list(row, "names", where, _MAX_AXES)
    sizes = _numbers(row, "sizes", where, _MAX_AXES, 1, _MAX_RANKS)
    ranks = _ranks(row, where, rank_count)
    coordinates = _numbers(row, "coordinates", where, _MAX_AXES, 0, _MAX_RANKS)
    if not all(isinstance(name, str) and len(name) <= _MAX_TEXT for name in names):
        raise _ContentError(f"{where}.names: expected texts, got {str(names)[:80]}.")
    if math.prod(sizes) != len(ranks) or not len(names) == len(sizes) == len(coordinates):
        raise _ContentError(
            f"{where}: expected a name, a size and a coordinate for each axis, and a rank for each place, got "
            f"{len(names)} names, sizes {sizes}, {len(coordinates)} coordinates and {len(ranks)} ranks."
        )
    mesh = Mesh(tuple(names), sizes, ranks, coordinates)
    if rank not in ranks or mesh.coordinates_of(rank) != coordinates:
        raise _ContentError(f"{where}.coordinates: expected those of rank {rank} in {ranks[:16]}, got {coordinates}.")
    return mesh


def _sharding(row: Any, where: str, meshes: Sequence[Mesh]) -> TensorSharding:
    shape = _numbers(row, "shape", where, MAX_NDIM, 0, _MAX_SIZE)
    mesh = meshes[_number(row, "mesh", where, 0, len(meshes) - 1)]
    texts = _list(row, "placements", where, _MAX_AXES)
    try:
        placements = tuple(parse_placement(text if isinstance(text, str) else str(text)) for text in texts)
    except FormatError as error:
        raise _ContentError(f"{where}.{error}") from error
    if len(placements) != len(mesh.sizes) or any(
        placement.dim is not None and placement.dim >= len(shape) for placement in placements
    ):
        raise _ContentError(
            f"{where}.placements: expected one for each of {len(mesh.sizes)} axes, of a tensor of {len(shape)} "
            f"dimensions, got {str(texts)[:80]}."
        )
    return TensorSharding(shape, placements, mesh)


def _operand(row: Any, where: str, shardings: Sequence[TensorSharding]) -> Operand:
    has_sharding = _value(row, "layout", where) is not None
    sharding = shardings[_number(row, "layout", where, 0, len(shardings) - 1)] if has_sharding else None
    return Operand(*_operand_key(row, where), sharding)


def _operand_key(row: Any, where: str) -> tuple[int, str, str, int, int]:
    """Graph, name, io, slot and iteration of an operand."""
    io = _text(row, "io", where)
    if io not in (INPUT, OUTPUT):
        raise _ContentError(f'{where}.io: expected "input" or "output", got {io[:80]!r}.')
    graph_id, slot, iteration = (_number(row, key, where) for key in ("graph", "slot", "iteration"))
    return graph_id, _text(row, "name", where), io, slot, iteration


def _message_operand(row: Any, where: str, rank_count: int) -> MessageOperand:
    source, destination = (_number(row, key, where, 0, rank_count - 1) for key in ("source", "destination"))
    tag, number = _number(row, "tag", where, -_MAX_SIZE), _number(row, "number", where)
    message = Message(_text(row, "group", where), source, destination, tag, number)
    return MessageOperand(*_operand_key(row, where), message, _text(row, "misuse", where))


def _rows(content: Mapping[str, Any], key: str) -> list[tuple[str, Any]]:
    rows = _list(content, key, "the file", _MAX_SIZE)
    return [(f"{key}[{index}]", row) for index, row in enumerate(rows)]


def _value(row: Any, key: str, where: str) -> Any:
    if not isinstance(row, dict) or key not in row:
        raise _ContentError(f"{where}: expected an object with {key!r}, got {str(row)[:80]}.")
    return row[key]


def _text(row: Any, key: str, where: str) -> str:
    text = _value(row, key, where)
    if not isinstance(text, str) or len(text) > _MAX_TEXT:
        raise _ContentError(f"{where}.{key}: expected a text of at most {_MAX_TEXT} characters, got {str(text)[:80]}.")
    return text


def _number(row: Any, key: str, where: str, least: int = 0, most: int = _MAX_SIZE) -> int:
    return _checked(_value(row, key, where), f"{where}.{key}", least, most)


def _numbers(row: Any, key: str, where: str, length: int, least: int, most: int) -> tuple[int, ...]:
    items = _list(row, key, where, length)
    return tuple(_checked(item, f"{where}.{key}", least, most) for item in items)


def _ranks(row: Any, where: str, rank_count: int) -> tuple[int, ...]:
    ranks = _numbers(row, "ranks", where, _MAX_RANKS, 0, rank_count - 1)
    if not ranks or len(set(ranks)) != len(ranks):
        raise _ContentError(f"{where}.ranks: expected ranks that differ, got {str(ranks)[:80]}.")
    return ranks


def _list(row: Any, key: str, where: str, length: int) -> list[Any]:
    items = _value(row, key, where)
    if not isinstance(items, list) or len(items) > length:
        raise _ContentError(f"{where}.{key}: expected a list of at most {length} items, got {str(items)[:80]}.")
    return items


def _checked(value: Any, where: str, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise _ContentError(f"{where}: expected an integer from {least} to {most}, got {str(value)[:80]}.")
    return value
