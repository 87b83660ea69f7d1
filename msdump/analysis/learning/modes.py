"""A model that is left in evaluation mode: statistics of its batches stand still while it is trained."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from msdump.analysis.learning.kinds import EVALUATION, LearningFinding
from msdump.analysis.learning.places import line_of, place_of
from msdump.analysis.learning.series import Series, content_of
from msdump.analysis.learning.updates import steps_in
from msdump.analysis.steps import Operator, Step, StepKey
from msdump.formats.learning_json import Learning
from msdump.graph.types import SourceLine
from msdump.operators.kinds import kind_of
from msdump.operators.traits import is_random

# Steps of training in evaluation mode, one after the other until the end, and before them in training mode.
# test: report_left_in_evaluation, healthy_trainings_evaluated
LEAST_EVALUATED, LEAST_TRAINED = 3, 2


def evaluation(series: Series, learning: Learning) -> Iterator[LearningFinding]:
    """Buffers that stand still since the model as a whole is in evaluation mode, though an optimizer goes on. Where a
    script freezes the normalisations alone, the model is in training mode.
    """
    spans = learning.trainings
    if spans is None:
        return
    if not spans:
        yield from _never_trained(series, learning)
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
    elif stepping and (random := _no_more_drawn(series, before, tail)) is not None:
        node = series.node(*random)
        line = line_of(stepping[0]) if node is None else node.own_line
        key = random[0].key._replace(iteration=first)
        yield LearningFinding(EVALUATION, (), key, last, random[1], line, "dropout")


def _never_trained(series: Series, learning: Learning) -> Iterator[LearningFinding]:
    """Norms whose statistics are those that they begin with, 0 and 1, while an optimizer makes its steps."""
    iterations = list(series.backwards)
    first, last = iterations[0], iterations[-1]
    stepping = [one for one in learning.optimizers if steps_in(one.steps, first, last) >= LEAST_EVALUATED]
    names: list[str] = []
    for step in series.by_iteration[last] if stepping else ():
        for operator in step.operators:
            node = series.node(step, operator) if kind_of(operator.op_type) == "batch_norm" else None
            running = [origin.name for origin in node.inputs[3:5] if origin is not None] if node is not None else []
            known = [series.parameters[name][last][0] for name in running if last in series.parameters.get(name, {})]
            if [(each.min, each.max) for each in known] == [(0, 0), (1, 1)]:
                names += running
    if names:
        key, operator, line = _reader(series, names, first)
        yield LearningFinding(EVALUATION, tuple(names), key, last, operator, line, "start")


def _no_more_drawn(series: Series, before: list[int], tail: list[int]) -> tuple[Step, Operator] | None:
    """An operator that draws numbers in each iteration of training, where none does so in those after them."""
    for step in series.by_iteration[before[-1]]:
        for operator in step.operators:
            if not is_random(operator.op_type) or operator.stage != "forward" or not _is_in_module(operator):
                continue
            found = [series.find(at, step.key.graph_id, operator.label) for at in before]
            later = [each for at in tail for one in series.by_iteration[at] for each in one.operators]
            is_drawn = any(is_random(each.op_type) and _is_in_module(each) for each in later)
            return (step, operator) if all(found) and not is_drawn else None
    return None


def _is_in_module(operator: Operator) -> bool:
    """Whether a module runs it, as a dropout is run, and not the script."""
    return operator.label.count("/") > 1


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
