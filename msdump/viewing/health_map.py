"""The map of a dump: operators by iterations, with health and statistics of each cell, and the curves above it.

docs/viewer-data.md describes the answers.
"""

from __future__ import annotations

import base64
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from msdump.analysis.graph_info import GraphFiles
from msdump.analysis.overview.contents import Contents, ExportedOperator
from msdump.analysis.overview.health import Health
from msdump.analysis.ranks.subjects import GRADIENT_OF, subjects_of
from msdump.analysis.stat.rows import TensorStatistics
from msdump.analysis.steps import StepKey
from msdump.formats.paths.parse import msprobe_forward
from msdump.graph.traits import reads_shape_only
from msdump.tensors import dtypes
from msdump.tensors.records import INPUT, OUTPUT

FORWARD, BACKWARD, OPTIMIZER, PARAMETERS, CONSTRUCTION = (
    "forward", "backward", "optimizer", "parameters", "construction",
)  # fmt: skip
PARTS = (FORWARD, BACKWARD, OPTIMIZER, PARAMETERS, CONSTRUCTION)
WHOLE_STEP = "step"  # of a graph that holds several parts
STATISTICS = ("l2", "max", "nan", "zero", "error", "distance")
NO_CELL = "."
# A graph is of one part when at most one operator in so many belongs to another.
_STRAYS = 10
_STEP_OF_LOG = 1 << 14
_Graph = tuple[int | None, int | None]


class _Row(NamedTuple):
    part: str
    graph: int | None
    name: str


def graph_parts(operators: Iterable[ExportedOperator]) -> dict[_Graph, str]:
    """The part of a training step that each graph of a rank is: one of PARTS, or WHOLE_STEP for several in one.

    Where the backward pass has a graph of its own, one with operators of an optimizer is the optimizer's: it holds the
    clipping of gradients too, whose names have no optimizer in them.
    Edges: a forward graph that ran in the first iteration alone, where others ran in more, is the construction of the
           model. A graph of nothing but parameters is "parameters".
    """
    stages: dict[_Graph, Counter[str]] = {}
    iterations: dict[_Graph, set[int | None]] = {}
    for one in operators:
        graph = one.step.rank_id, one.step.graph_id
        iterations.setdefault(graph, set()).add(one.step.iteration)
        counts = stages.setdefault(graph, Counter())
        if not one.operator.is_parameter:
            counts[_stage(one)] += 1
    first = {rank: min(_numbers(iterations, rank), default=None) for rank, _ in stages}
    longest = {rank: max(len(steps) for (own, _), steps in iterations.items() if own == rank) for rank, _ in stages}
    parts = {}
    for graph, counts in stages.items():
        part = PARAMETERS
        if counts:
            part = _most(counts)
            others = (count for (rank, _), count in stages.items() if rank == graph[0] and count is not counts)
            if counts[OPTIMIZER] and not counts[BACKWARD] and any(count[BACKWARD] for count in others):
                part = OPTIMIZER
        rank = graph[0]
        is_first_only = longest[rank] > 1 and iterations[graph] == {first[rank]}
        if part == FORWARD and is_first_only and _has_other(stages, graph):
            part = CONSTRUCTION
        parts[graph] = part
    return parts


def _numbers(iterations: Mapping[_Graph, set[int | None]], rank: int | None) -> list[int]:
    return [step for (own, _), steps in iterations.items() if own == rank for step in steps if step is not None]


def _most(counts: Counter[str]) -> str:
    """The part of a graph by how many of its operators belong to each."""
    (most, count), total = counts.most_common(1)[0], counts.total()
    is_one = (most != FORWARD and len(counts) < 3) or (total - count) * _STRAYS <= total
    return most if is_one else WHOLE_STEP


def _has_other(stages: Mapping[_Graph, Counter[str]], graph: _Graph) -> bool:
    """Whether another graph of the rank can be the forward part."""
    return any(own[0] == graph[0] and own != graph and counts[FORWARD] for own, counts in stages.items())


def _stage(one: ExportedOperator) -> str:
    label = one.operator.label
    # Records of msprobe say it in their names: Torch.relu.0.backward.
    return BACKWARD if msprobe_forward(label) != label else one.operator.stage


def _part_of(one: ExportedOperator, graphs: Mapping[_Graph, str]) -> str:
    if one.operator.is_parameter:
        return PARAMETERS
    part = graphs[one.step.rank_id, one.step.graph_id]
    return _stage(one) if part == WHOLE_STEP else part


class HealthMap:
    """The answers `map`, `map/RANK` and `map/RANK/STATISTIC` of some contents, each made when it is asked for.

    Raises: as `Contents`.
    """

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._operators = contents.operators
        self.parts = graph_parts(self._operators)
        self.ranks: list[int | None] = _sorted({one.step.rank_id for one in self._operators})
        self.iterations: list[int | None] = _sorted({one.step.iteration for one in self._operators})
        self.rows: list[_Row] = self._ordered_rows()

    def _ordered_rows(self) -> list[_Row]:
        """Part by part, in execution order; one that comes in a later iteration stands where it ran there."""
        first: dict[_Row, tuple[int, int, int]] = {}
        for one in self._operators:
            row = self._row(one)
            if row not in first:
                graph = -1 if row.graph is None else row.graph
                first[row] = PARTS.index(row.part), graph, one.number
        # The last graph of an iteration shows what the iteration has left of a parameter.
        last = {row.name: row for row in sorted(first, key=first.__getitem__) if row.part == PARAMETERS}
        shown = (row for row in first if row.part != PARAMETERS or last[row.name] == row)
        return sorted(shown, key=first.__getitem__)

    def _row(self, one: ExportedOperator) -> _Row:
        return _Row(_part_of(one, self.parts), one.step.graph_id, one.operator.label)

    # -- answers -----------------------------------------------------------------------------------------------------

    def frame(self, first: tuple[StepKey, str] | None) -> dict[str, Any]:
        """What all ranks share.   first: step and operator of the first finding"""
        present = [part for part in PARTS if any(row.part == part for row in self.rows)]
        counted = [row.part != CONSTRUCTION for row in self.rows]
        worst = self._health[:, counted].min(axis=1, initial=len(Health))
        return {
            "ranks": self.ranks,
            "iterations": self.iterations,
            "parts": present,
            "rows": {
                "part": [present.index(row.part) for row in self.rows],
                "graph": [row.graph for row in self.rows],
                "name": [row.name for row in self.rows],
            },
            "statistics": [name for name in STATISTICS if self._is_there(name)],
            "cells": [_text(codes) for codes in worst],
            "curves": [self._curves(rank) for rank in self.ranks],
            "first": self._place(first),
            "outvoted": self.outvoted,
            "dead": self.dead,
        }

    def health(self, rank: int | None) -> dict[str, Any]:
        """Health of all cells of a rank; one in which the other ranks outvote it differs."""
        return {"cells": _text(self._health[self.ranks.index(rank)].reshape(-1))}

    def statistic(self, rank: int | None, name: str) -> dict[str, Any]:
        """One statistic of all cells of a rank."""
        return {"cells": _logs(self._values[name][self.ranks.index(rank)])}

    @property
    def statistics(self) -> list[str]:
        """Those that at least one cell has."""
        return [name for name in STATISTICS if self._is_there(name)]

    def _is_there(self, name: str) -> bool:
        values = self._values[name]
        return bool((values > 0).any() if name == "nan" else (~np.isnan(values)).any())

    def _place(self, at: tuple[StepKey, str] | None) -> list[int] | None:
        """Numbers of rank, row and iteration; None for an operator without a row."""
        if at is None:
            return None
        step, label = at
        for number, row in enumerate(self.rows):
            if (row.graph, row.name) == (step.graph_id, label) and step.rank_id in self.ranks:
                return [self.ranks.index(step.rank_id), number, self.iterations.index(step.iteration)]
        return None

    @cached_property
    def outvoted(self) -> list[tuple[int, int | None, int]]:
        """Rank, iteration and number of tensors in which the others outvote it there."""
        job = self._contents.job
        if job is None:
            return []
        from msdump.analysis.ranks.job import rows_as_values

        counts: Counter[tuple[int, int | None]] = Counter()
        for row in rows_as_values(job.unequal):
            if row["has_majority"]:
                counts.update((rank, row["iteration"]) for rank in row["suspects"])
        for row in rows_as_values(job.undeclared):
            counts.update((rank, row["iteration"]) for rank in row["suspects"] or ())
        return [(rank, iteration, count) for (rank, iteration), count in sorted(counts.items(), key=repr)]

    @cached_property
    def _outvoted_operators(self) -> set[tuple[int, str, int | None]]:
        """Rank, full name and iteration of the operators in whose tensors a rank is outvoted."""
        job = self._contents.job
        if job is None:
            return set()
        from msdump.analysis.ranks.job import rows_as_values

        rows = [row for row in rows_as_values(job.unequal) if row["has_majority"]] + rows_as_values(job.undeclared)
        return {
            (rank, row["name"], row["iteration"])
            for row in rows
            for rank in row["suspects"] or ()
            if rank in self.ranks and row["iteration"] in self.iterations
        }

    @cached_property
    def dead(self) -> list[int]:
        """Rows of the forward and the backward part whose outputs are all zero in every iteration of every rank."""
        zero = self._values["zero"]
        is_there = ~np.isnan(zero)
        all_zero = np.where(is_there, zero, 1.0).min(axis=(0, 2), initial=1.0) >= 1.0
        is_float = self._is_float & is_there.any(axis=(0, 2))
        suspicious = (self._health == Health.SUSPICIOUS.rank).any(axis=(0, 2))
        return [
            number
            for number, row in enumerate(self.rows)
            if all_zero[number] and is_float[number] and suspicious[number] and row.part in (FORWARD, BACKWARD)
        ]

    # -- cells -------------------------------------------------------------------------------------------------------

    @cached_property
    def _shape(self) -> tuple[int, int, int]:
        return len(self.ranks), len(self.rows), len(self.iterations)

    @cached_property
    def _cells(self) -> tuple[Any, dict[str, Any], Any]:
        """Rank of the health (as many as there are for no cell), statistics, and whether rows are of floats."""
        health = np.full(self._shape, len(Health), np.uint8)
        values = {name: np.full(self._shape, np.nan) for name in STATISTICS}
        is_float = np.zeros(len(self.rows), bool)
        row_numbers = {row: number for number, row in enumerate(self.rows)}
        ranks = {rank: number for number, rank in enumerate(self.ranks)}
        columns = {iteration: number for number, iteration in enumerate(self.iterations)}
        health_of_dump = self._contents.health
        for one in self._operators:
            row = row_numbers.get(self._row(one))
            if row is None:
                continue
            cell = ranks[one.step.rank_id], row, columns[one.step.iteration]
            health[cell] = min(int(health[cell]), one.health.rank)
            outputs = [tensor for tensor in one.tensors if tensor.tensor.io == OUTPUT] or one.tensors
            found = {
                "l2": _largest(_size(tensor.numbers.l2norm) for tensor in outputs),
                "max": _largest(map(magnitude, outputs)),
                "zero": _share_of_zeros(outputs),
                "nan": _largest(map(_not_finite, one.tensors)),
                "error": _largest(_size(health_of_dump.error(tensor)) for tensor in one.tensors),
            }
            for name, value in found.items():
                if value is not None:
                    values[name][cell] = value
            dtype = dtypes.BY_NAME.get(outputs[0].tensor.true_dtype)
            is_float[row] |= dtype is not None and dtype.is_float
        for rank, name, iteration in self._outvoted_operators:
            for number, other in enumerate(self.rows):
                cell = ranks[rank], number, columns[iteration]
                if other.name == name and health[cell] < len(Health):
                    health[cell] = min(int(health[cell]), Health.DIFFERS.rank)
        if len(self.ranks) > 1:
            values["distance"] = _distances(values["l2"])
        return health, values, is_float

    @property
    def _health(self) -> Any:
        return self._cells[0]

    @property
    def _values(self) -> dict[str, Any]:
        return self._cells[1]

    @property
    def _is_float(self) -> Any:
        return self._cells[2]

    # -- curves ------------------------------------------------------------------------------------------------------

    def _curves(self, rank: int | None) -> dict[str, Any]:
        own = [one for one in self._operators if one.step.rank_id == rank]
        name, losses = self._losses(own)
        return {
            "loss": None if name is None else {"name": name, "values": losses},
            "gradient_norm": self._gradient_norms(rank),
            "largest": self._largest_values(own),
        }

    def _losses(self, own: Sequence[ExportedOperator]) -> tuple[str | None, list[Any]]:
        """The scalar that the forward part ends with, of the same operator in all iterations.

        An operator that is called a loss goes before one that is not.
        """
        last: dict[tuple[bool, int | None], tuple[str, TensorStatistics]] = {}
        for one in own:
            if _part_of(one, self.parts) != FORWARD or reads_shape_only(one.operator.op_type):
                continue
            scalar = next((tensor for tensor in one.tensors if _is_scalar(tensor)), None)
            if scalar is not None:
                last[_is_loss(one.operator.op_type), one.step.iteration] = one.operator.label, scalar
        for is_loss in (True, False):
            found = {iteration: entry for (kind, iteration), entry in last.items() if kind == is_loss}
            if found:
                name = Counter(label for label, _ in found.values()).most_common(1)[0][0]
                values = [found.get(iteration) for iteration in self.iterations]
                return name, [
                    None if entry is None or entry[0] != name else _shown(_scalar(entry[1])) for entry in values
                ]
        return None, []

    def _gradient_norms(self, rank: int | None) -> list[Any] | None:
        """Root of the sum of squares of all gradients of parameters; None where no gradient is known."""
        squares: dict[int | None, dict[object, float]] = {}
        for row, subject in self._gradients or self._read_by_optimizers:
            size = _size(row.numbers.l2norm)
            if row.step.rank_id == rank and size is not None:
                # The first tensor is what the backward pass has made, before it is clipped or scaled.
                squares.setdefault(row.step.iteration, {}).setdefault(subject, size * size)
        if not squares:
            return None
        norms = [squares.get(iteration) for iteration in self.iterations]
        return [None if norm is None else _shown(math.sqrt(sum(norm.values()))) for norm in norms]

    @cached_property
    def _gradients(self) -> list[tuple[TensorStatistics, object]]:
        rows = self._contents.statistics.rows
        subjects = subjects_of(rows, GraphFiles(self._contents.dump))
        return [
            (row, subject)
            for row, subject in zip(rows, subjects, strict=True)
            if subject is not None and subject.startswith(GRADIENT_OF)
        ]

    @cached_property
    def _read_by_optimizers(self) -> list[tuple[TensorStatistics, object]]:
        """What the graph of an optimizer reads of the backward pass, and who made it: gradients without a name.

        The backward pass makes views of parameters too, which the optimizer changes.
        """
        found: list[tuple[TensorStatistics, object]] = []
        for row in self._contents.statistics.rows:
            step, slot = row.step, row.tensor.slot
            is_read = row.tensor.io == INPUT and row.node is not None and 0 <= slot < len(row.node.inputs)
            if not is_read or self.parts.get((step.rank_id, step.graph_id)) != OPTIMIZER:
                continue
            origin = row.node.inputs[slot] if row.node is not None else None
            # Inputs of a graph are called after parameters, which have dots, or after arguments: self[3].
            maker = None if origin is None or "." in origin.name else origin.maker
            if maker is not None and self.parts.get((step.rank_id, maker[0])) == BACKWARD:
                found.append((row, maker))
        return found

    def _largest_values(self, own: Iterable[ExportedOperator]) -> list[Any]:
        """Largest absolute value that the forward and the backward part have made and that is finite.

        An optimizer counts its steps, which say nothing.
        """
        largest: dict[int | None, float] = {}
        for one in own:
            if _part_of(one, self.parts) not in (FORWARD, BACKWARD):
                continue
            for tensor, health in zip(one.tensors, one.healths, strict=True):
                value = None if health is Health.UNSET or tensor.tensor.io != OUTPUT else magnitude(tensor)
                if value is not None and math.isfinite(value):
                    largest[one.step.iteration] = max(largest.get(one.step.iteration, 0.0), value)
        return [_shown(largest.get(iteration)) for iteration in self.iterations]


def _sorted(numbers: Iterable[int | None]) -> list[int | None]:
    return sorted(numbers, key=lambda number: -1 if number is None else number)


def magnitude(row: TensorStatistics) -> float | None:
    """Largest absolute value of a tensor; inf where an extreme is not finite, None where none is known."""
    sizes = [_size(value) for value in (row.numbers.max, row.numbers.min)]
    return _largest(sizes)


def _size(value: Any) -> float | None:
    """Without sign; a NaN is inf here: no value that could be drawn."""
    if value is None:
        return None
    size = abs(float(value))
    return math.inf if math.isnan(size) else size


def _largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _not_finite(row: TensorStatistics) -> float | None:
    counts = [getattr(row.numbers, name) for name in ("nan", "negative_inf", "positive_inf")]
    return None if all(count is None for count in counts) else float(sum(count or 0 for count in counts))


def _share_of_zeros(rows: Iterable[TensorStatistics]) -> float | None:
    zeros = elements = 0
    for row in rows:
        if row.numbers.zero is not None and row.numbers.count:
            zeros += row.numbers.zero
            elements += row.numbers.count
    return zeros / elements if elements else None


def _distances(sizes: Any) -> Any:
    """Distance of the L2 norm of each rank from the median of the ranks, as a share of it.

    Shapes: sizes (ranks, rows, iterations) -> the same
    Edges:  NaN where fewer than two ranks have the cell; inf where some ranks are finite and this one is not, and
            where the median is zero and this rank is not.
    """
    is_there = ~np.isnan(sizes)
    is_shared = is_there & (is_there.sum(axis=0) > 1)
    # The lower one of two in the middle, so that an even number of ranks has a value that one of them has.
    ordered = np.sort(sizes, axis=0)  # NaN goes last
    middle = np.maximum(is_there.sum(axis=0) - 1, 0) // 2
    median = np.take_along_axis(ordered, middle[None], axis=0)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        distance = np.abs(sizes - median) / np.abs(median)
    distance = np.where((sizes == median), 0.0, np.where(np.isnan(distance), np.inf, distance))
    return np.where(is_shared, distance, np.nan)


def _is_scalar(row: TensorStatistics) -> bool:
    dtype = dtypes.BY_NAME.get(row.tensor.true_dtype)
    is_one = math.prod(row.shape) == 1 and len(row.shape) < 2
    return row.tensor.io == OUTPUT and is_one and dtype is not None and dtype.is_float


def _scalar(row: TensorStatistics) -> Any:
    """Value of a tensor of one element, which may be NaN or Inf; None where it is not known."""
    numbers = row.numbers
    if numbers.nan:
        return math.nan
    if numbers.positive_inf or numbers.negative_inf:
        return math.inf if numbers.positive_inf else -math.inf
    return numbers.avg if numbers.avg is not None else numbers.max


def _is_loss(op_type: str) -> bool:
    name = op_type.lower()
    return ("loss" in name or "entropy" in name) and "grad" not in name


def _shown(value: Any) -> Any:
    """Four significant digits; text for what JSON has no number for."""
    if value is None:
        return None
    return float(f"{value:.4g}") if math.isfinite(value) else str(float(value))


def _text(codes: Any) -> str:
    """One digit a cell; NO_CELL for none."""
    letters = np.frombuffer(f"{'0123456789'[: len(Health)]}{NO_CELL}".encode(), np.uint8)
    return bytes(letters[codes]).decode()


def _logs(values: Any) -> str:
    """Decimal logarithms with four digits of the values, as float32 (little-endian) in base64.

    NaN where there is none, inf for what is not finite, -inf for zero.
    """
    with np.errstate(divide="ignore"):
        logs = np.log10(values)
    return base64.b64encode((np.round(logs * _STEP_OF_LOG) / _STEP_OF_LOG).astype("<f4").tobytes()).decode()
