"""Units that are all alike: what a constant initial value makes of a layer, and no training undoes."""

from __future__ import annotations

from collections.abc import Iterator

from msdump.analysis.learning.kinds import ALIKE, LearningFinding
from msdump.analysis.learning.places import order_of_use, place_of, step_line
from msdump.analysis.learning.series import Numbers, Series, content_of
from msdump.formats.learning_json import Learning

# Iterations, all that there are, units, and how far these may lie apart, as a share: rounding tells them apart.
# test: test_units_that_are_all_alike
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
    if names:
        step, operator = place_of(series, names[0], iterations[0], None)
        line = step_line(series, names[0], iterations[0])
        yield LearningFinding(ALIKE, tuple(names), step, iterations[-1], operator, line)


def _is_alike(numbers: Numbers) -> bool:
    if numbers.max is None or numbers.min is None:
        return False
    return bool(numbers.max) and numbers.max - numbers.min <= APART * max(abs(numbers.max), abs(numbers.min))
