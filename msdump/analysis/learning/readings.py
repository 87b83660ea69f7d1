"""Values of a parameter that a script reads as Python numbers, and that come back to the loss as constants."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from msdump.analysis.graph_info import GraphFile, GraphNode
from msdump.analysis.learning.causes import Cause
from msdump.analysis.learning.kinds import LOSSES
from msdump.analysis.learning.series import Loss, Series, count_of
from msdump.analysis.steps import Slot, Step
from msdump.operators.kinds import kind_of
from msdump.tensors import dtypes

# What `item` calls.
_READS = "aten._local_scalar_dense."
# What `torch.tensor` calls with what it has made.
_MAKES = "aten.lift_fresh."
# Operands of sums, products and powers: an operator has many another number, most of them by default.
_OPERANDS = ("other", "self", "exponent")
_WRITTEN = re.compile(r"(?<![\w.])(?:[0-9]+[.]?[0-9]*|[.][0-9]+)(?:[eE][-+]?[0-9]+)?")
# Iterations in which a number comes back: one may be equal to another by chance.
LEAST_READ = 2
# Of a statistic that is written in six digits.
_TOLERANCE = 1e-5


def read_as_number(series: Series, name: str) -> Cause | None:
    """Who reads what is computed of a parameter as a number that the loss is computed of again.

    Returns: None where nothing of it comes back, as where a script prints it
    """
    causes = []
    for iteration in series.backwards[:LEAST_READ]:
        loss = series.losses.get(iteration)
        step = None if loss is None else _step_of(series, iteration, loss)
        graph = None if step is None else series.graph(step)
        if loss is None or step is None or graph is None:
            return None
        causes.append(_in_iteration(series, step, graph, loss, name))
    return causes[0] if len(causes) == LEAST_READ and None not in causes else None


def unread_loss(series: Series, name: str) -> Cause | None:
    """The loss function that is computed of a parameter, and that nothing but a script reads."""
    causes = []
    for iteration in series.backwards[:LEAST_READ]:
        loss = series.losses.get(iteration)
        step = None if loss is None else _step_of(series, iteration, loss)
        graph = None if step is None else series.graph(step)
        if step is None or graph is None:
            return None
        sources = [end.inputs[0].name for end, _ in _ends(series, step, graph, name) if end.inputs and end.inputs[0]]
        ends = [end for end, _ in _ends(series, step, graph, name)]
        made = [node for node in (*ends, *map(graph.by_name.get, sources)) if node and kind_of(node.op_type) in LOSSES]
        found = series.find(iteration, step.key.graph_id, made[0].full_name) if made else None
        causes.append(None if found is None else Cause(step.key, found[1], made[0].own_line, "unread"))
    return causes[0] if len(causes) == LEAST_READ and None not in causes else None


def _step_of(series: Series, iteration: int, loss: Loss) -> Step | None:
    return next((step for step in series.by_iteration[iteration] if step.key.graph_id == loss.key.graph_id), None)


def _in_iteration(series: Series, step: Step, graph: GraphFile, loss: Loss, name: str) -> Cause | None:
    ends = list(_ends(series, step, graph, name))
    places = {node.full_name: place for place, node in enumerate(graph.nodes)} if ends else {}
    for node in _before(graph, loss.operator.label) if ends else ():
        found = series.find(step.key.iteration or 0, step.key.graph_id, node.full_name)
        if found is None:
            continue
        for end, value in ends:
            is_read = end.op_type.startswith(_READS) and places[end.full_name] < places[node.full_name]
            if is_read and any(_is_same(value, each) for each in _numbers(node)):
                reader = series.find(step.key.iteration or 0, step.key.graph_id, end.full_name)
                return None if reader is None else Cause(step.key, reader[1], end.own_line, "number")
        numbers = series.numbers(found[1].outputs.get(Slot(0)))
        if node.op_type.startswith(_MAKES) and numbers is not None and 1 <= count_of(numbers) <= len(ends):
            values = [value for _, value in ends]
            if all(any(_is_same(value, each) for value in values) for each in (numbers.max, numbers.min)):
                return Cause(step.key, found[1], node.own_line, "number")
    return None


def _ends(series: Series, step: Step, graph: GraphFile, name: str) -> Iterator[tuple[GraphNode, float]]:
    """Floats of one element that are computed of a parameter and that no operator reads, or one that makes a number
    of them, each with its value.
    """
    reached: dict[str, GraphNode] = {}
    read: set[str] = set()
    for node in graph.nodes:
        sources = [origin.name for origin in node.inputs if origin is not None]
        if name in sources or not reached.keys().isdisjoint(sources):
            reached[node.full_name] = node
            read |= set(sources)
    for node in reached.values():
        found = series.find(step.key.iteration or 0, step.key.graph_id, node.full_name)
        is_read = node.op_type.startswith(_READS)
        if found is None or (node.full_name in read and not is_read):
            continue
        tensor = (found[1].inputs if is_read else found[1].outputs).get(Slot(0))
        numbers, kind = series.numbers(tensor), None if tensor is None else dtypes.BY_NAME.get(tensor.dtype)
        is_float = kind is not None and kind.is_float
        if numbers is not None and is_float and count_of(numbers) == 1 and numbers.max:  # many a constant is 0
            yield node, float(numbers.max)


def _before(graph: GraphFile, loss: str) -> list[GraphNode]:
    """The operators that a loss is computed of."""
    needed, found = {loss}, []
    for node in reversed(graph.nodes):
        if node.full_name in needed:
            found.append(node)
            needed |= {origin.name for origin in node.inputs if origin is not None}
    return found[::-1]


def _numbers(node: GraphNode) -> Iterator[object]:
    """Operands of an operator that are Python numbers, but for those that its line of the script writes down."""
    code = "" if node.own_line is None else node.own_line.code
    written = [float(each) for each in _WRITTEN.findall(code)]
    for name, value in (node.attrs or {}).items():
        if name in _OPERANDS and not any(_is_same(each, value) for each in written):
            yield value


def _is_same(value: float, other: object) -> bool:
    return (
        isinstance(other, int | float)
        and not isinstance(other, bool)
        and math.isclose(value, other, rel_tol=_TOLERANCE)
    )
