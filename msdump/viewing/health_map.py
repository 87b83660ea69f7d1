"""The map of a dump: operators by iterations, with health and statistics of each cell, and the curves above it.

docs/viewer-data.md describes the answers.
"""

from __future__ import annotations

import base64
import math
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from msdump.analysis.overview.contents import Contents, ExportedOperator
from msdump.analysis.overview.curves import Curves, largest_of, magnitude, size_of
from msdump.analysis.overview.flow import flow_of
from msdump.analysis.overview.health import Health
from msdump.analysis.overview.parts import BACKWARD, CONSTRUCTION, FORWARD, PARAMETERS, PARTS, graph_parts, part_of
from msdump.analysis.stat.rows import TensorStatistics
from msdump.analysis.steps import StepKey
from msdump.operators.codes import dequantises
from msdump.tensors import dtypes
from msdump.tensors.records import OUTPUT

STATISTICS = ("l2", "max", "nan", "zero", "saturated", "error", "distance")
_IF_ANY = ("nan", "saturated")  # where none is above zero they say nothing
NO_CELL = "."
_STEP_OF_LOG = 1 << 14


class _Row(NamedTuple):
    part: str
    graph: int | None
    name: str


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
        part = CONSTRUCTION if one.operator.label in self._of_weights else part_of(one, self.parts)
        return _Row(part, one.step.graph_id, one.operator.label)

    @cached_property
    def _of_weights(self) -> set[str]:
        """Operators that make numbers of a weight's codes: no operator has made what they read."""
        steps: dict[StepKey, list[ExportedOperator]] = {}
        for one in self._operators:
            steps.setdefault(one.step, []).append(one)
        found: set[str] = set()
        for operators in steps.values():
            if any(dequantises(one.operator.op_type) for one in operators):
                flow = flow_of(operators)
                for one, sources, reads in zip(operators, flow.sources, flow.reads, strict=True):
                    if dequantises(one.operator.op_type) and not reads and all(source is None for source in sources):
                        found.add(one.operator.label)
        return found

    # -- answers -----------------------------------------------------------------------------------------------------

    def frame(self, first: tuple[StepKey, str] | None) -> dict[str, Any]:
        """What all ranks share.   first: step and operator of the first finding"""
        present = [part for part in PARTS if any(row.part == part for row in self.rows)]
        curves = Curves(self._contents, self.parts, self.iterations)
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
            "curves": [curves.of(rank) for rank in self.ranks],
            "first": self._place(first),
            "outvoted": self.outvoted,
            "dead": self.dead,
        }

    def health(self, rank: int | None) -> dict[str, Any]:
        """Health of all cells of a rank; one in which the other ranks outvote it differs."""
        return {"cells": _text(self._health[self.ranks.index(rank)].reshape(-1))}

    def statistic(self, rank: int | None, name: str) -> dict[str, Any]:
        """One statistic of all cells of a rank."""
        return {"cells": packed_logs(self._values[name][self.ranks.index(rank)])}

    @property
    def statistics(self) -> list[str]:
        """Those that at least one cell has."""
        return [name for name in STATISTICS if self._is_there(name)]

    def _is_there(self, name: str) -> bool:
        values = self._values[name]
        return bool((values > 0).any() if name in _IF_ANY else (~np.isnan(values)).any())

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
    def outvoted(self) -> list[tuple[int | None, int | None, int]]:
        """Rank, iteration and number of tensors in which the others outvote it there."""
        job = self._contents.job
        if job is None:
            return []
        counts = Counter((rank, iteration) for rank, iteration, *_ in job.outvoted)
        return [(rank, iteration, count) for (rank, iteration), count in sorted(counts.items(), key=repr)]

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
                "l2": largest_of(size_of(tensor.numbers.l2norm) for tensor in outputs),
                "max": largest_of(map(magnitude, outputs)),
                "zero": _share_of_zeros(outputs),
                "saturated": _share_near_limit(outputs),
                "nan": largest_of(map(_not_finite, one.tensors)),
                "error": largest_of(size_of(health_of_dump.error(tensor)) for tensor in one.tensors),
            }
            for name, value in found.items():
                if value is not None:
                    values[name][cell] = value
            dtype = dtypes.BY_NAME.get(outputs[0].tensor.true_dtype)
            is_float[row] |= dtype is not None and dtype.is_float
        if len(self.ranks) > 1:
            values["distance"] = distances_of(values["l2"])
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


def _sorted(numbers: Iterable[int | None]) -> list[int | None]:
    return sorted(numbers, key=lambda number: -1 if number is None else number)


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


def _share_near_limit(rows: Iterable[TensorStatistics]) -> float | None:
    """Share of elements that are infinite or within a factor of two of the largest value of their dtype.

    Edges: None where no exponents were counted, and for integers.
    """
    near = elements = 0
    for row in rows:
        dtype = dtypes.BY_NAME.get(row.tensor.true_dtype)
        if row.exponents is None or dtype is None or not dtype.is_float or not row.numbers.count:
            continue
        last = math.frexp(float(dtypes.float_limits(dtype.numpy).max))[1] - 1 - row.exponents.first
        if 0 <= last < len(row.exponents.positive):
            near += row.exponents.positive[last] + row.exponents.negative[last]
        near += (row.numbers.positive_inf or 0) + (row.numbers.negative_inf or 0)
        elements += row.numbers.count
    return near / elements if elements else None


def distances_of(sizes: Any) -> Any:
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


def _text(codes: Any) -> str:
    """One digit a cell; NO_CELL for none."""
    letters = np.frombuffer(f"{'0123456789'[: len(Health)]}{NO_CELL}".encode(), np.uint8)
    return bytes(letters[codes]).decode()


def packed_logs(values: Any) -> str:
    """Decimal logarithms with four digits of the values, as float32 (little-endian) in base64.

    NaN where there is none, inf for what is not finite, -inf for zero.
    """
    with np.errstate(divide="ignore"):
        logs = np.log10(values)
    return base64.b64encode((np.round(logs * _STEP_OF_LOG) / _STEP_OF_LOG).astype("<f4").tobytes()).decode()
