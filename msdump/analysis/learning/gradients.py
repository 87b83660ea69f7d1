"""Parameters that get no gradient, or one of 0, and those that have one that nobody uses."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from msdump.analysis.learning.causes import Cause, apart_of, cut_of, who_made_zero
from msdump.analysis.learning.kinds import LEAST_ZERO, NO_GRADIENT, NO_OPTIMIZER, STRAY, ZERO, LearningFinding
from msdump.analysis.learning.places import line_of, order_of_use, place_of
from msdump.analysis.learning.readings import read_as_number
from msdump.analysis.learning.series import Made, Series, is_zero
from msdump.analysis.learning.updates import never_changes
from msdump.formats.learning_json import Learning, LearningParameter

# Iterations, all that there are, in which no element of a batch meets the condition that a loss is multiplied by.
# test: blind_padding_alone_counts
LEAST_MASKED = 4
_DIGITS = re.compile(r"[0-9]+")


def _is_trained(series: Series, row: LearningParameter | None) -> bool:
    """Whether an optimizer steps it, as far as is known."""
    if series.learning is None:
        return True
    return row is not None and row.optimizer is not None


def without_gradient(series: Series, learning: Learning) -> Iterator[LearningFinding]:
    """Parameters that ask for a gradient, that an optimizer steps, and that operators of the forward pass read on the
    way to the loss, with no gradient in any backward pass.
    """
    if len(series.backwards) < LEAST_ZERO:
        return
    groups: dict[tuple[str, str], list[tuple[LearningParameter, Cause]]] = {}
    nothing_learns = not any(span.has for row in learning.parameters for _, span in series.spans(row))
    for row in learning.parameters:
        spans = list(series.spans(row))
        if row.optimizer is None or not all(span.asks and not span.has for _, span in spans) or len(spans) < LEAST_ZERO:
            continue
        cause = cut_of(series, learning, row.name, spans[0][0])
        if cause is None:
            cause = apart_of(series, spans[0][0]) if nothing_learns else read_as_number(series, row.name)
        if cause is not None:
            groups.setdefault((cause.how, cause.line_key), []).append((row, cause))
    for rows in groups.values():
        cause = rows[0][1]
        names = tuple(row.name for row, _ in rows)
        yield LearningFinding(
            NO_GRADIENT, names, cause.step, series.backwards[-1], cause.operator, cause.line, cause.how
        )


def zero_gradients(series: Series) -> Iterator[LearningFinding]:
    """Gradients that are 0 as a whole from some iteration on until the end, by who made them so."""
    groups: dict[tuple[int, str], list[tuple[str, Cause]]] = {}
    lasts: dict[tuple[int, str], int] = {}
    living: set[tuple[str, tuple[int, ...]]] = set()
    zeros: list[tuple[str, int, int, Made]] = []
    always: set[str] = set()
    for name, made in series.gradients.items():
        rows = [(iteration, made[iteration], series.output(made[iteration])) for iteration in sorted(made)]
        rows = [row for row in rows if row[2] is not None]
        tail = list(itertools.takewhile(lambda row: is_zero(row[2]), reversed(rows)))
        if len(tail) >= LEAST_ZERO and _is_trained(series, series.rows.get(name)):
            first, one, _ = tail[-1]
            zeros.append((name, first, tail[0][0], one))
            always |= {name} if len(tail) == len(rows) >= LEAST_MASKED else set()
        elif rows:
            living.add((_DIGITS.sub("#", name), rows[-1][1].shape))
    for name, first, last, one in zeros:
        loss = series.losses.get(last)
        if loss is not None and loss.value == 0 and any(each.value for each in series.losses.values()):
            continue  # it has nothing more to learn
        blame = who_made_zero(series, one)
        if blame is None or (blame.is_sum and living):
            continue  # what cancels out, as the bias of a difference
        if blame.is_mask and name not in always:
            continue  # some batches have no such element
        sibling = _DIGITS.sub("#", name), one.shape
        if blame.is_choice and _DIGITS.search(name) and sibling in living:
            continue  # one of several branches, of which a batch takes some
        key = first, blame.operator.label
        groups.setdefault(key, []).append((name, blame))
        lasts[key] = last
    # Of several that a script has made 0 before its first step, the last one has closed the way.
    for key, blamed in sorted(groups.items(), key=lambda group: -_place_before(series, group[1][0][1])):
        cause = blamed[0][1]
        names = tuple(name for name, _ in blamed)
        step = cause.step._replace(iteration=key[0])
        yield LearningFinding(ZERO, names, step, lasts[key], cause.operator, cause.line, cause.how)


def _place_before(series: Series, cause: Cause) -> int:
    """Of an operator that ran before the first step; else 0."""
    step = series.by_iteration[min(series.by_iteration)][0]
    is_before = cause.step == step.key and not any(each.is_parameter for each in step.operators)
    return step.operators.index(cause.operator) if is_before else 0


def without_optimizer(series: Series, learning: Learning) -> Iterator[LearningFinding]:
    """Parameters that have gradients, that no optimizer steps and that stay what they are, where that is no choice.

    It is one where they are those that the forward pass reads first, as where a head is trained on a body that is not
    frozen, or more than those that are trained, or of other kinds, as where biases alone are trained.
    """
    if not learning.optimizers:
        return
    with_gradient = [
        row
        for row in learning.parameters
        if sum(span.asks and span.has for at, span in series.spans(row) if at >= row.since) >= LEAST_ZERO
    ]
    trained = [row for row in with_gradient if row.optimizer is not None]
    left = [row for row in with_gradient if row.optimizer is None and never_changes(series, row.name, row.since)]
    if not left:
        return
    outside = [one for one in learning.optimizers if one.outside and one.steps]
    order = order_of_use(series)
    first_trained = min((order.get(row.name, -1) for row in trained), default=-1)
    if not outside and trained:
        left = [row for row in left if order.get(row.name, -1) > first_trained]
        kinds = {_kind(row.name) for row in trained}
        if not left or len(left) >= len(trained) or kinds.isdisjoint(_kind(row.name) for row in left):
            return
    made = series.gradients.get(left[0].name, {})
    first = min((at for at in made if at >= left[0].since), default=series.backwards[0])
    step, operator = place_of(series, left[0].name, first, made.get(first))
    one = outside[0] if outside else learning.optimizers[0]
    line = line_of(one)
    names = tuple(row.name for row in left)
    yield LearningFinding(
        NO_OPTIMIZER, names, step, series.backwards[-1], operator, line, "", {}, one.name, one.outside
    )


def strays(series: Series, learning: Learning) -> Iterator[LearningFinding]:
    """Parameters that operators read and that have gradients, in no module and in no optimizer."""
    if not learning.optimizers or not any(row.optimizer is not None for row in learning.parameters):
        return
    for stray in learning.strays:
        if stray.optimizer:
            continue
        for iteration in series.backwards[:1]:
            found = series.find(iteration, stray.graph, stray.operator)
            if found is not None:
                step, operator = found
                node = series.node(step, operator)
                line = None if node is None else node.own_line
                yield LearningFinding(
                    STRAY, (), step.key, series.backwards[-1], operator, line, "", {}, "", (stray.shape,)
                )
        return  # the others are of the same cause, as a rule


def _kind(name: str) -> str:
    """`weight`, of fc.weight."""
    return name.rpartition(".")[2]
