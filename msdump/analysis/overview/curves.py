"""Curves over the iterations of a dump: the loss, the norm of all gradients, and the largest value."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from msdump.analysis.graph_info import GraphFiles
from msdump.analysis.overview.contents import Contents, ExportedOperator
from msdump.analysis.overview.health import Health
from msdump.analysis.overview.parts import BACKWARD, FORWARD, OPTIMIZER, part_of
from msdump.analysis.ranks.subjects import GRADIENT_OF, subjects_of
from msdump.analysis.stat.rows import TensorStatistics
from msdump.operators.traits import reads_shape_only
from msdump.tensors import dtypes
from msdump.tensors.records import INPUT, OUTPUT


class Curves:
    """What a training looks like over its iterations.

    parts       of each graph of a rank, as `graph_parts` has them
    iterations  one number of each curve for each of them; None where there is none
    """

    def __init__(
        self,
        contents: Contents,
        parts: Mapping[tuple[int | None, int | None], str],
        iterations: Sequence[int | None],
    ) -> None:
        self._contents = contents
        self.parts = parts
        self.iterations = iterations

    def of(self, rank: int | None) -> dict[str, Any]:
        """`loss`, `gradient_norm` and `largest` of a rank, as docs/viewer-data.md has them.   Raises: as `Contents`."""
        name, found = self.numbers(rank)
        texts = {curve: None if values is None else list(map(shown, values)) for curve, values in found.items()}
        return {**texts, "loss": None if name is None else {"name": name, "values": texts["loss"]}}

    def numbers(self, rank: int | None) -> tuple[str | None, dict[str, list[float | None] | None]]:
        """(name of the operator that gives the loss, values of each curve), as they are.   Raises: as `Contents`."""
        own = [one for one in self._contents.operators if one.step.rank_id == rank]
        name, losses = self._losses(own)
        largest = self._largest_values(own)
        return name, {"loss": losses or None, "gradient_norm": self._gradient_norms(rank), "largest": largest}

    def _losses(self, own: Sequence[ExportedOperator]) -> tuple[str | None, list[Any]]:
        """The scalar that the forward part ends with, of the same operator in all iterations.

        An operator that is called a loss goes before one that is not. In a program that only runs forward such a one
        makes a number of many: constants and scales are scalars too.
        """
        is_trained = any(part_of(one, self.parts) in (BACKWARD, OPTIMIZER) for one in own)
        last: dict[tuple[bool, int | None], tuple[str, TensorStatistics]] = {}
        for one in own:
            if part_of(one, self.parts) != FORWARD or reads_shape_only(one.operator.op_type):
                continue
            scalar = next((tensor for tensor in one.tensors if _is_scalar(tensor)), None)
            is_loss = _is_loss(one.operator.op_type)
            if scalar is not None and (is_loss or is_trained or any(math.prod(row.shape) > 1 for row in one.tensors)):
                last[is_loss, one.step.iteration] = one.operator.label, scalar
        for is_loss in (True, False):
            found = {iteration: entry for (kind, iteration), entry in last.items() if kind == is_loss}
            if found:
                name = Counter(label for label, _ in found.values()).most_common(1)[0][0]
                values = [found.get(iteration) for iteration in self.iterations]
                return name, [None if entry is None or entry[0] != name else _scalar(entry[1]) for entry in values]
        return None, []

    def _gradient_norms(self, rank: int | None) -> list[Any] | None:
        """Root of the sum of squares of all gradients of parameters; None where no gradient is known."""
        squares: dict[int | None, dict[object, float]] = {}
        for row, subject in self._gradients or self._read_by_optimizers:
            size = size_of(row.numbers.l2norm)
            if row.step.rank_id == rank and size is not None:
                # The first tensor is what the backward pass has made, before it is clipped or scaled.
                squares.setdefault(row.step.iteration, {}).setdefault(subject, size * size)
        if not squares:
            return None
        norms = [squares.get(iteration) for iteration in self.iterations]
        return [None if norm is None else math.sqrt(sum(norm.values())) for norm in norms]

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
            if part_of(one, self.parts) not in (FORWARD, BACKWARD):
                continue
            for tensor, health in zip(one.tensors, one.healths, strict=True):
                value = None if health is Health.UNSET or tensor.tensor.io != OUTPUT else magnitude(tensor)
                if value is not None and math.isfinite(value):
                    largest[one.step.iteration] = max(largest.get(one.step.iteration, 0.0), value)
        return [largest.get(iteration) for iteration in self.iterations]


def _is_scalar(row: TensorStatistics) -> bool:
    dtype = dtypes.BY_NAME.get(row.tensor.true_dtype)
    is_one = math.prod(row.shape) == 1 and len(row.shape) < 2
    return row.tensor.io == OUTPUT and is_one and dtype is not None and dtype.is_float


def _scalar(row: TensorStatistics) -> Any:
    """Value of a tensor of one element, which may be NaN or Inf; None where it is not known."""
    numbers = row.numbers
    if numbers.holds_nan:
        return math.nan
    if numbers.holds_inf:
        return -math.inf if numbers.negative_inf or numbers.min == -math.inf else math.inf
    return numbers.avg if numbers.avg is not None else numbers.max


def _is_loss(op_type: str) -> bool:
    name = op_type.lower()
    return ("loss" in name or "entropy" in name) and "grad" not in name


def shown(value: Any) -> Any:
    """Four significant digits; text for what JSON has no number for."""
    if value is None:
        return None
    return float(f"{value:.4g}") if math.isfinite(value) else str(float(value))


def magnitude(row: TensorStatistics) -> float | None:
    """Largest absolute value of a tensor; inf where an extreme is not finite, None where none is known."""
    sizes = [size_of(value) for value in (row.numbers.max, row.numbers.min)]
    return largest_of(sizes)


def size_of(value: Any) -> float | None:
    """A number without its sign; a NaN is inf here: no value that could be drawn."""
    if value is None:
        return None
    size = abs(float(value))
    return math.inf if math.isnan(size) else size


def largest_of(values: Iterable[float | None]) -> float | None:
    """The largest of those that are known; None where none is."""
    return max((value for value in values if value is not None), default=None)
