"""What flows between the operators of a step: by its graph file, else recovered from equal tensors."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from msdump.analysis.overview.contents import ExportedOperator
from msdump.analysis.stat.rows import TensorStatistics
from msdump.tensors.records import INPUT, OUTPUT

GRAPH, RECOVERED, ORDER = "graph", "recovered", "order"
_numbers_of = attrgetter("max", "min", "avg", "l2norm", "zero", "nan", "negative_inf", "positive_inf")
_NOTHING = (None,) * 8


@dataclass(frozen=True, slots=True)
class Flow:
    """Producers of the inputs of one step. Operators are numbered from 0 on, in execution order.

    how      GRAPH: a graph file of the dump tells them; RECOVERED: equal tensors do; ORDER: nothing does
    sources  of each tensor of each operator: number of the operator whose output it is, or None
    reads    of each operator: producers of inputs that were not dumped
    """

    how: str
    sources: tuple[tuple[int | None, ...], ...]
    reads: tuple[tuple[int, ...], ...]


def flow_of(operators: Sequence[ExportedOperator]) -> Flow:
    """Producers of all inputs of a step, whose operators are in execution order.

    An input without a graph file comes from the last earlier output of its dtype, shape and bytes, or, where bytes
    are unknown, of its statistics. A tensor whose elements are all equal says little: it has a producer only where a
    single earlier output equals it.
    """
    numbers = {operator.operator.label: number for number, operator in enumerate(operators)}
    sources = tuple(tuple(_source(operator, row, numbers) for row in operator.tensors) for operator in operators)
    reads = tuple(_reads(operator, numbers) for operator in operators)
    if any(operator.node is not None and any(operator.node.inputs) for operator in operators):
        return Flow(GRAPH, sources, reads)
    sources = _recovered(operators)
    is_known = any(source is not None for own in sources for source in own)
    return Flow(RECOVERED if is_known else ORDER, sources, reads)


def _source(operator: ExportedOperator, row: TensorStatistics, numbers: dict[str, int]) -> int | None:
    node, slot = operator.node, row.tensor.slot
    if node is None or row.tensor.io != INPUT or not 0 <= slot < len(node.inputs):
        return None
    origin = node.inputs[slot]
    return None if origin is None else numbers.get(origin.name)


def _reads(operator: ExportedOperator, numbers: dict[str, int]) -> tuple[int, ...]:
    if operator.node is None:
        return ()
    dumped = {row.tensor.slot for row in operator.tensors if row.tensor.io == INPUT}
    origins = (origin for slot, origin in enumerate(operator.node.inputs) if slot not in dumped)
    found = (numbers.get(origin.name) for origin in origins if origin is not None and origin.slot is not None)
    return tuple(dict.fromkeys(number for number in found if number is not None))


def _recovered(operators: Sequence[ExportedOperator]) -> tuple[tuple[int | None, ...], ...]:
    made: dict[Hashable, list[int]] = {}
    sources = []
    for number, operator in enumerate(operators):
        keys = list(map(_key, operator.tensors))
        own: list[int | None] = []
        for row, key in zip(operator.tensors, keys, strict=True):
            producers = made.get(key, []) if row.tensor.io == INPUT and key is not None else []
            is_certain = len(producers) == 1 or (len(producers) > 1 and not _is_constant(row))
            own.append(producers[-1] if is_certain else None)
        for row, key in zip(operator.tensors, keys, strict=True):
            if row.tensor.io == OUTPUT and key is not None and not operator.operator.is_parameter:
                made.setdefault(key, []).append(number)
        sources.append(tuple(own))
    return tuple(sources)


def _key(row: TensorStatistics) -> Hashable:
    """Equal for tensors that may be one; None where nothing is known of the elements."""
    about = row.tensor.true_dtype, row.shape
    if row.md5 is not None:
        return (*about, row.md5)
    numbers = _numbers_of(row.numbers)
    if numbers == _NOTHING:
        return None
    # No NaN equals another one, but as text.
    return (*about, *(str(number) if number != number else number for number in numbers))


def _is_constant(row: TensorStatistics) -> bool:
    return row.numbers.max is not None and row.numbers.max == row.numbers.min
