"""Event files for TensorBoard: statistics and exponents of tensors over the iterations, by tensorboardX."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msdump.analysis.exporting import Written
from msdump.analysis.overview.contents import Contents
from msdump.analysis.stat.rows import TensorStatistics
from msdump.errors import ConfigError, WriteError
from msdump.formats.atomic import make_dirs, scratch_folder
from msdump.statistics.exponents import ExponentHistogram
from msdump.tables.frames import optional_package, utf8_text
from msdump.tables.printable import printable
from msdump.tensors.records import OUTPUT

# TensorBoard draws a card for each; with more of them its page does not answer.
MOST_TAGS = 2000
_SCALARS = ("l2norm", "max", "min", "nan")
_TAGS = len(_SCALARS) + 1  # of one tensor
_Name = tuple[int, int, str, str, str]
_Row = tuple[int, TensorStatistics, int]


def export(contents: Contents, to: str, path: str) -> Written:
    """Write a run for each rank below a folder.

    Of more tensors than there is room for, unhealthy ones come first, then gradients and parameters, then outputs.
    Raises: as `Contents`; ConfigError when tensorboardX is not installed or the place is taken; WriteError.
    """
    root = Path(path)
    if path == "-" or (os.path.lexists(root) and (not root.is_dir() or any(root.iterdir()))):
        raise ConfigError(f"{path}: expected the path of a new or an empty folder, got another. Name one with -o.")
    writers = optional_package("tensorboardX", "export --to tensorboard")
    found: dict[_Name, list[_Row]] = {}
    for operator in contents.operators:
        for row, health in zip(operator.tensors, operator.healths, strict=True):
            key = operator.step.rank_id or 0, operator.step.graph_id or 0, operator.operator.label, *_slot(row)
            found.setdefault(key, []).append((operator.step.iteration or 0, row, health.rank))
    order = {key: index for index, key in enumerate(found)}
    room = MOST_TAGS // _TAGS
    kept = sorted(sorted(found, key=lambda key: (*_importance(found[key]), order[key]))[:room], key=order.__getitem__)
    notes = []
    if len(found) > room:
        notes.append(f"Left out: {len(found) - room} of {len(found)} tensors; TensorBoard holds {MOST_TAGS} tags well.")
    make_dirs(root.parent, 0o755)
    with scratch_folder(root.parent) as scratch:
        temporary = scratch / root.name
        try:
            has_graphs = len({key[1] for key in kept}) > 1
            for rank in sorted({key[0] for key in kept}):
                mine = {key: found[key] for key in kept if key[0] == rank}
                _write(writers, temporary / f"rank_{rank}", mine, has_graphs)
            if root.is_dir():
                root.rmdir()
            os.replace(temporary, root)
        except OSError as error:
            raise WriteError(f"{root}: expected to write event files, got: {error.strerror}.") from error
    return Written((root,), tuple(notes))


def _write(writers: Any, folder: Path, tensors: Mapping[_Name, list[_Row]], has_graphs: bool) -> None:
    summary = optional_package("tensorboardX.proto.summary_pb2", "export --to tensorboard").Summary
    with writers.SummaryWriter(str(folder), write_to_disk=True) as writer:
        for (_, graph, label, io, slot), rows in tensors.items():
            name = _text(f"{label}/{io}_{slot}")
            tag = f"graph_{graph}/{name}" if has_graphs else name
            for iteration, row, _ in rows:
                wall = None if row.tensor.timestamp_us is None else row.tensor.timestamp_us / 1e6
                values = {name: getattr(row.numbers, name) for name in _SCALARS}
                scalars = [
                    summary.Value(tag=f"{tag}/{name}", simple_value=value)
                    for name, value in values.items()
                    if value is not None
                ]
                # `add_scalar` warns about each NaN, which is expected here.
                writer.file_writer.add_summary(summary(value=scalars), iteration, walltime=wall)
                if row.exponents is not None and row.exponents.count:
                    histogram = _histogram(row.exponents)
                    writer.add_histogram_raw(f"{tag}/exponents", **histogram, global_step=iteration, walltime=wall)


def _histogram(exponents: ExponentHistogram) -> dict[str, Any]:
    """Counts over log2 of the magnitude, which TensorBoard's linear axis can show."""
    counts = [left + right for left, right in zip(exponents.positive, exponents.negative, strict=True)]
    first, last = exponents.first, exponents.first + len(counts)
    middles = [first + index + 0.5 for index in range(len(counts))]
    return {
        "min": float(first),
        "max": float(last),
        "num": float(sum(counts)),
        "sum": math.fsum(count * middle for count, middle in zip(counts, middles, strict=True)),
        "sum_squares": math.fsum(count * middle**2 for count, middle in zip(counts, middles, strict=True)),
        "bucket_limits": [float(first), *(float(first + index + 1) for index in range(len(counts)))],
        "bucket_counts": [0.0, *map(float, counts)],
    }


def _importance(rows: list[_Row]) -> tuple[int, bool, bool]:
    first = rows[0][1]
    is_parameter = first.operator is not None and first.operator.is_parameter
    is_weight = is_parameter or first.role.is_gradient
    return min(rank for _, _, rank in rows), not is_weight, first.tensor.io != OUTPUT


def _slot(row: TensorStatistics) -> tuple[str, str]:
    return row.tensor.io, row.tensor.slot_text


def _text(text: object) -> str:
    return printable(utf8_text(text))
