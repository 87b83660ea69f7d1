"""Recomputation: an operator of a backward pass that runs once more, and gives something else than the first time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from msdump.analysis._payload import has_same_bytes
from msdump.analysis.compare.result import Comparison, OperatorResult
from msdump.analysis.graph_info import GraphFiles
from msdump.analysis.steps import Operator, Slot
from msdump.formats.dump_tensor import DumpedTensor
from msdump.graph.types import SourceLine
from msdump.operators.traits import is_random

_BACKWARD = "Gradients/"


@dataclass(frozen=True, slots=True)
class Repetition:
    """An operator that repeats another one of its iteration.

    first   of the forward pass
    again   of the backward pass
    """

    first: OperatorResult
    again: OperatorResult


def differing_repetition(comparison: Comparison) -> Repetition | None:
    """The first operator that differs, where golden's repeats one of the forward pass exactly, and mine's does not.

    Edges: a gradient has the line of its operator too, but reads something else.
    """
    differing = comparison.first_differing
    again = None if differing is None else comparison.first_wrong or differing
    if again is None or not _is_of_backward(again.pair.mine):
        return None
    graphs = comparison.graphs_of(True)
    line = _line(graphs, again)
    if line is None:
        return None
    for first in comparison.operators:
        mine, golden = (first.pair.mine, again.pair.mine), (first.pair.golden, again.pair.golden)
        is_candidate = (
            first.step[::2] == again.step[::2]
            and mine[0].op_type == mine[1].op_type
            and not _is_of_backward(mine[0])
            and _line(graphs, first) == line
        )
        if is_candidate and _repeats(*golden) and not _is_equal(mine[0].outputs, mine[1].outputs):
            return Repetition(first, again)
    return None


def _is_of_backward(operator: Operator) -> bool:
    return operator.label.startswith(_BACKWARD)


def _line(graphs: GraphFiles, result: OperatorResult) -> SourceLine | None:
    node = graphs.node(result.step, result.pair.mine)
    return None if node is None else node.own_line


def _repeats(first: Operator, again: Operator) -> bool:
    """Whether it gives the same of the same. What a random operator is given may be memory that it fills."""
    has_same_inputs = is_random(first.op_type) or _is_equal(first.inputs, again.inputs)
    return has_same_inputs and _is_equal(first.outputs, again.outputs)


def _is_equal(left: Mapping[Slot, DumpedTensor], right: Mapping[Slot, DumpedTensor]) -> bool:
    return bool(left) and left.keys() == right.keys() and all(has_same_bytes(left[slot], right[slot]) for slot in left)
