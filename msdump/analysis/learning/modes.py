"""A model that is left in evaluation mode: statistics of its batches stand still while it is trained."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from msdump.analysis.learning.kinds import EVALUATION, LearningFinding
from msdump.analysis.learning.places import place_of
from msdump.analysis.learning.series import Series, content_of
from msdump.analysis.learning.updates import steps_in
from msdump.analysis.steps import Operator, StepKey
from msdump.formats.learning_json import Learning
from msdump.graph.types import SourceLine

# Steps of training in evaluation mode, one after the other until the end, and before them in training mode.
# test: report_left_in_evaluation, healthy_trainings_evaluated
LEAST_EVALUATED, LEAST_TRAINED = 3, 2


def evaluation(series: Series, learning: Learning) -> Iterator[LearningFinding]:
    """Buffers that stand still since the model as a whole is in evaluation mode, though an optimizer goes on. Where a
    script freezes the normalisations alone, the model is in training mode.
    """
    spans = learning.trainings
    if not spans:
        return
    tail = list(itertools.takewhile(lambda at: not steps_in(spans, at, at), reversed(series.backwards)))
    before = [at for at in series.backwards if tail and at < tail[-1] and steps_in(spans, at, at)]
    if len(tail) < LEAST_EVALUATED or len(before) < LEAST_TRAINED:
        return
    first, last = tail[-1], tail[0]
    stepping = [one for one in learning.optimizers if steps_in(one.steps, first, last) >= LEAST_EVALUATED]
    names = [name for name in series.parameters if name not in series.rows and _stops(series, name, before, tail)]
    if stepping and names:
        step, operator, line = _reader(series, names, first)
        yield LearningFinding(EVALUATION, tuple(names), step, last, operator, line)


def _stops(series: Series, name: str, before: list[int], tail: list[int]) -> bool:
    """Whether a buffer is another one in each iteration before, and the same in each of the last ones."""
    rows = series.parameters[name]
    earlier = [content_of(rows[at][0]) for at in before if at in rows]
    later = {content_of(rows[at][0]) for at in tail if at in rows}
    return len(earlier) >= LEAST_TRAINED and len(set(earlier)) == len(earlier) and len(later) == 1


def _reader(series: Series, names: list[str], iteration: int) -> tuple[StepKey, Operator, SourceLine | None]:
    """The first operator that reads one of some buffers; the first of these where nothing tells."""
    for step in series.by_iteration[iteration]:
        for operator in step.operators:
            node = series.node(step, operator)
            read = () if node is None else [origin.name for origin in node.inputs if origin and origin.slot is None]
            if node is not None and not set(names).isdisjoint(read):
                return step.key, operator, node.own_line
    return *place_of(series, names[0], iteration, None), None
