"""Units that are all alike: what a constant initial value makes of a layer, and no training undoes."""

from __future__ import annotations

from collections.abc import Iterator

from msdump.analysis.graph_info import GraphNode
from msdump.analysis.learning.kinds import ALIKE, LearningFinding
from msdump.analysis.learning.places import order_of_use, place_of, step_line
from msdump.analysis.learning.series import Numbers, Series, content_of
from msdump.analysis.steps import Operator, Slot, Step
from msdump.formats.learning_json import Learning, LearningParameter

# Iterations, all that there are, units, and how far these may lie apart, as a share: rounding tells them apart.
# test: losses_that_do_not_fall_constant_start
LEAST_ALIKE, LEAST_UNITS, APART = 4, 4, 1e-4


def alike(series: Series, learning: Learning) -> Iterator[LearningFinding]:
    """Biases of hidden units, and weights, that change and have one value for all units. The last layer is left out:
    its biases rise alike where a loss adds up what it makes.
    """
    iterations = list(series.backwards)
    if len(iterations) < LEAST_ALIKE:
        return
    order = order_of_use(series)
    last = max((order[row.name] for row in learning.parameters if row.name in order and len(row.shape) > 1), default=-1)
    names = []
    for row in learning.parameters:
        rows = series.parameters.get(row.name, {})
        known = [rows[at][0] for at in iterations if at in rows]
        is_inner = order.get(row.name, last) < last - 1 and row.optimizer is not None
        is_large = max(row.shape, default=0) >= LEAST_UNITS
        if is_inner and is_large and len(known) >= LEAST_ALIKE and all(map(_is_alike, known)):
            changes = len(set(map(content_of, known))) > len(known) // 2
            names += [row.name] if changes else []
    if not names:
        return
    # The weights make the units alike; their biases, which follow, tell that no training tells them apart.
    began = [row.name for row in learning.parameters if _begins_alike(series, row)]
    if began:
        step, operator = place_of(series, began[0], iterations[0], None)
        found = _reader(series, began[0])
        line = None if found is None else found[2].own_line
        yield LearningFinding(ALIKE, tuple(began), step, iterations[-1], operator, line, "start")
    else:
        step, operator = place_of(series, names[0], iterations[0], None)
        line = step_line(series, names[0], iterations[0])
        yield LearningFinding(ALIKE, tuple(names), step, iterations[-1], operator, line)


def _begins_alike(series: Series, row: LearningParameter) -> bool:
    """Whether a weight of several units has one value where the forward pass reads it for the first time."""
    found = _reader(series, row.name) if len(row.shape) > 1 and max(row.shape) >= LEAST_UNITS else None
    if found is None or row.optimizer is None:
        return False
    _, operator, node = found
    place = next(place for place, origin in enumerate(node.inputs) if origin is not None and origin.name == row.name)
    numbers = series.numbers(operator.inputs.get(Slot(place)))
    return numbers is not None and _is_alike(numbers)


def _reader(series: Series, name: str) -> tuple[Step, Operator, GraphNode] | None:
    """The first operator that reads a parameter."""
    for step in next(iter(series.by_iteration.values())):
        graph = series.graph(step)
        for node in () if graph is None else graph.nodes:
            if any(origin is not None and origin.slot is None and origin.name == name for origin in node.inputs):
                found = series.find(step.key.iteration or 0, step.key.graph_id, node.full_name)
                return None if found is None else (*found, node)
    return None


def _is_alike(numbers: Numbers) -> bool:
    if numbers.max is None or numbers.min is None:
        return False
    return bool(numbers.max) and numbers.max - numbers.min <= APART * max(abs(numbers.max), abs(numbers.min))
