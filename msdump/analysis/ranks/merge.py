"""The tensors of a job's ranks as those of one device: shards are joined, replicas taken once, terms of a sum added.

What comes out is a dump like any other, so that every command that reads dumps compares it with a run of another
sharding, or with one of a single device.   Source: DTensor's placements, as layout.json has them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from msdump.analysis.ranks.shardings import ShardingRules, sharding_of
from msdump.analysis.steps import Operator, Slot, StepKey, read_steps
from msdump.errors import ConfigError, DtypeError, FormatError
from msdump.formats.atomic import make_dirs, write_file
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_tensor import DumpedTensor
from msdump.formats.npy import npy_array, npy_header
from msdump.formats.selection import ALL_STEPS, StepSelection
from msdump.formats.sharding_json import PARTIAL, RankSharding, TensorSharding
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.records import OUTPUT

_OPERATIONS = {"sum": np.add, "avg": np.add, "max": np.maximum, "min": np.minimum, "product": np.multiply}
# Beside the tensors: what tells the order of operators and their lines.
_SIDE_FOLDERS = ("execution_order", "graphs")
# Of layout.json, by rank, and of the user.
_Shardings = tuple[dict[int, RankSharding], "ShardingRules | None"]


@dataclass
class Merged:
    """Result of merging a job.

    path      of the dump
    tensors   written
    joined    of these from several ranks
    problems  (tensor, why it is not there or is that of one rank only)
    """

    path: str
    tensors: int = 0
    joined: int = 0
    problems: list[tuple[str, str]] = field(default_factory=list)


def merge_ranks(
    dumps: Sequence[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    selection: StepSelection = ALL_STEPS,
    *,
    rules: ShardingRules | None = None,
) -> Merged:
    """Write the dump that one device would have left, as `rank_0` below a new folder.

    rules   shardings of tensors of which layout.json says nothing

    Operators are those of the lowest rank that has them; a tensor of which no sharding is known is that rank's.
    Edges:  replicas must hold equal bytes, which `msdump ranks` checks: here the lowest rank's are taken. Tensors of
            strided shards, and such that lack a rank, are problems and are not written. Terms are added in float64.
    Raises: ConfigError when the place is taken or there are no tensors; FormatError when there is nothing at a path.
    """
    root = Path(target)
    if os.path.lexists(root):
        raise ConfigError(f"{root}: expected no such folder yet, got one. Choose another place.")
    merged = Merged(os.fspath(root))
    opened = [DumpDir.open(path, keeps_headers=True) for path in dumps]
    shardings: dict[int, RankSharding] = {}
    steps: dict[tuple[int, int], dict[int, dict[str, Operator]]] = {}
    for dump in opened:
        shardings.update(dump.layouts)
        for step in read_steps(dump, selection):
            step_key = step.key.graph_id or 0, step.key.iteration or 0
            by_rank = steps.setdefault(step_key, {})
            by_rank[step.key.rank_id or 0] = {operator.label: operator for operator in step.operators}
    if len({rank for by_rank in steps.values() for rank in by_rank}) == 1:
        rules = None  # a run of one device needs no sharding
    if not steps:
        raise ConfigError(f"{', '.join(str(dump.path) for dump in opened)}: expected tensors of a job, got none.")
    for (graph_id, number), by_rank in sorted(steps.items()):
        _merge_step(StepKey(0, graph_id, number), by_rank, (shardings, rules), root, merged)
    _copy_side_files(opened, root)
    merged.problems += [(path, str(error)) for dump in opened for path, error in dump.damaged]
    return merged


def _merge_step(
    key: StepKey,
    by_rank: dict[int, dict[str, Operator]],
    shardings: _Shardings,
    root: Path,
    merged: Merged,
) -> None:
    labels: dict[str, int] = {}
    for rank in sorted(by_rank):
        for label in by_rank[rank]:
            labels.setdefault(label, rank)
    for label, first in labels.items():
        for io, slot, tensor in by_rank[first][label].all_tensors():
            where = f"{label}, {io} {slot}, {key}"
            try:
                array, is_joined = _whole(where, tensor, io, slot, label, first, by_rank, shardings, key)
                name = dtypes.dtype_from_numpy(array.dtype).name
                data = np.ascontiguousarray(npy_array(array, name))
                folder = root / "rank_0" / (tensor.file.levels.model or "Net") / str(key.graph_id) / str(key.iteration)
                make_dirs(folder)
                header = npy_header(name, tuple(array.shape))
                write_file(folder / os.path.basename(tensor.path), [header, data.tobytes()], 0o400, replace=True)
            except (ConfigError, FormatError, DtypeError, OSError) as error:
                merged.problems.append((where, str(error)))
                continue
            merged.tensors += 1
            merged.joined += is_joined


def _whole(
    where: str,
    tensor: DumpedTensor,
    io: str,
    slot: Slot,
    label: str,
    first: int,
    by_rank: dict[int, dict[str, Operator]],
    shardings: _Shardings,
    key: StepKey,
) -> tuple[Array, bool]:
    """The tensor of all ranks, and whether several had a part in it.   Raises: FormatError."""

    by_rank_known, rules = shardings
    operand = key.graph_id or 0, tensor.full_name or tensor.op_name, io, slot.number, key.iteration or 0

    def own_sharding(rank: int, part: DumpedTensor) -> TensorSharding | None:
        return sharding_of(by_rank_known.get(rank), rules, rank, operand, part.shape)

    sharding = own_sharding(first, tensor)
    if sharding is None or len(sharding.equal_ranks) == len(sharding.mesh.ranks):
        return _loaded(tensor), False
    parts: dict[tuple[tuple[int, int, int], ...], Array] = {}
    terms: dict[tuple[tuple[int, int, int], ...], int] = {}
    seen: set[tuple[int, ...]] = set()
    dtype = dtypes.dtype(tensor.true_dtype).numpy
    operation = next((placement.operation for placement in sharding.placements if placement.kind == PARTIAL), "")
    for rank in sharding.mesh.ranks:
        block = sharding.block(rank)
        if block is None:
            raise FormatError(f"{where}: expected parts that are blocks, got a strided shard. It cannot be joined.")
        bounds = tuple(axis.indices(size) for axis, size in zip(block, sharding.shape, strict=True))
        if not all(stop > start for start, stop, _ in bounds):
            continue  # of more ranks than rows; nothing is dumped of it
        operator = by_rank.get(rank, {}).get(label)
        mine = None if operator is None else (operator.outputs if io == OUTPUT else operator.inputs).get(slot)
        own = None if mine is None else own_sharding(rank, mine)
        if own is None or mine is None:
            raise FormatError(f"{where}: expected the part of rank {rank}, got none. Dump every rank of the mesh.")
        if own.equal_ranks in seen:
            continue  # a replica of one that is there
        seen.add(own.equal_ranks)
        part = _loaded(mine)
        if part.shape != tuple(stop - start for start, stop, _ in bounds):
            shape = tuple(stop - start for start, stop, _ in bounds)
            raise FormatError(f"{where}: expected a part of shape {shape} on rank {rank}, got {part.shape}.")
        terms[bounds] = terms.get(bounds, 0) + 1
        parts[bounds] = part if bounds not in parts else _joined(where, parts[bounds], part, operation)
    whole = np.zeros(sharding.shape, next((part.dtype for part in parts.values()), dtype))
    for bounds, part in parts.items():
        total = part / terms[bounds] if operation == "avg" else part
        whole[tuple(slice(*indices) for indices in bounds)] = total
    return whole.astype(dtype), True


def _joined(where: str, first: Array, second: Array, operation: str) -> Array:
    if operation not in _OPERATIONS:
        raise FormatError(f"{where}: expected terms of one of {', '.join(_OPERATIONS)}, got of {operation!r}.")
    is_whole = first.dtype.kind in "biuc"
    left, right = (first, second) if is_whole else (first.astype(np.float64), second.astype(np.float64))
    result: Array = _OPERATIONS[operation](left, right)
    return result


def _loaded(tensor: DumpedTensor) -> Array:
    """As the operator had it, not as the file widened it."""
    array = tensor.load_host()
    dtype = dtypes.dtype(tensor.true_dtype).numpy
    return array if array.dtype == dtype else array.astype(dtype)


def _copy_side_files(dumps: Sequence[DumpDir], root: Path) -> None:
    for dump in dumps:
        for folder in sorted(dump.rank_dirs()):
            for name in _SIDE_FOLDERS:
                source, target = folder / name, root / "rank_0" / name
                if source.is_dir() and not source.is_symlink() and not target.exists():
                    shutil.copytree(source, target, symlinks=True)
