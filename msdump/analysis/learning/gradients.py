"""Parameters that get no gradient, or one of 0, and those that have one that nobody uses."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping

from msdump.analysis.learning.causes import Cause, apart_of, cut_of, leads_to, who_made_zero
from msdump.analysis.learning.kinds import (
    EMPTY,
    FROZEN,
    LEAST_ZERO,
    NEVER_STEPPED,
    NO_GRADIENT,
    NO_OPTIMIZER,
    STRAY,
    ZERO,
    LearningFinding,
)
from msdump.analysis.learning.places import line_of, order_of_use, place_of
from msdump.analysis.learning.readings import read_as_number, unread_loss
from msdump.analysis.learning.series import Loss, Made, Series, content_of, is_zero
from msdump.analysis.learning.updates import never_changes, steps_in
from msdump.analysis.steps import Slot
from msdump.formats.learning_json import GradientSpan, Learning, LearningParameter, Stray
from msdump.graph.types import SourceLine

# Iterations, all that there are, in which no element of a batch meets the condition that a loss is multiplied by.
# test: blind_padding_alone_counts
LEAST_MASKED = 4
# How many times more elements are left out than are trained, where a script freezes what it does not train.
# test: dozen_half_of_the_adapter
MANY_LEFT_OUT = 10
# Iterations with gradients and without a step: a script may add up those of many batches.
# test: losses_that_do_not_fall_unstepped
LEAST_UNSTEPPED = 16
# Steps after the iteration in which most elements that an optimizer trains are frozen, and their share.
# test: dozen_body_frozen_in_the_wrong_epoch
LEAST_FROZEN, MOST_FROZEN = 8, 0.9
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
    earlier = series.earlier_losses
    nothing_learns = not any(span.has for row in learning.parameters for _, span in series.spans(row))
    for row in learning.parameters:
        spans = list(series.spans(row))
        if row.optimizer is None or not all(span.asks and not span.has for _, span in spans) or len(spans) < LEAST_ZERO:
            continue
        if any(leads_to(series, learning, row.name, spans[0][0], loss) for loss, _ in earlier(spans[0][0])):
            continue  # it had one: `cleared_by_the_next`
        cause = cut_of(series, learning, row.name, spans[0][0])
        if cause is None:
            cause = (
                apart_of(series, spans[0][0])
                if nothing_learns
                else read_as_number(series, row.name) or unread_loss(series, row.name)
            )
        if cause is not None:
            groups.setdefault((cause.how, cause.line_key), []).append((row, cause))
    for rows in groups.values():
        cause = rows[0][1]
        names = tuple(row.name for row, _ in rows)
        yield LearningFinding(
            NO_GRADIENT, names, cause.step, series.backwards[-1], cause.operator, cause.line, cause.how
        )


def cleared_by_the_next(series: Series, learning: Learning) -> Iterator[LearningFinding]:
    """Parameters whose gradients are those of one backward pass of several in an iteration, that have none after the
    last one, and that stay what they are: no step of their optimizer stands in between.
    """
    groups: dict[tuple[int, str], tuple[Loss, SourceLine | None, list[str]]] = {}
    for row in learning.parameters:
        spans = list(series.spans(row))
        is_without = all(span.asks and not span.has for _, span in spans) and len(spans) >= LEAST_ZERO
        if row.optimizer is None or not is_without or not never_changes(series, row.name, row.since):
            continue
        if steps_in(learning.optimizers[row.optimizer].steps, spans[0][0], spans[-1][0]) < LEAST_ZERO:
            continue
        for loss, line in series.earlier_losses(spans[0][0]):
            if leads_to(series, learning, row.name, spans[0][0], loss):
                groups.setdefault((row.optimizer, loss.operator.label), (loss, line, []))[2].append(row.name)
                break
    for (number, _), (loss, line, names) in groups.items():
        yield LearningFinding(
            EMPTY, tuple(names), loss.key, series.backwards[-1], loss.operator, line,
            optimizer=learning.optimizers[number].name,
        )  # fmt: skip


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
        if blame is None or (blame.is_sum and living and len(one.shape) < 2):
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
    stepped = {number for number, one in enumerate(learning.optimizers) if one.steps or one.skipped}
    trained = [row for row in with_gradient if row.optimizer in stepped]
    left = [row for row in with_gradient if row.optimizer is None and never_changes(series, row.name, row.since)]
    if not left:
        return
    outside = [one for one in learning.optimizers if one.outside and one.steps]
    order = order_of_use(series)
    first_trained = min((order.get(row.name, -1) for row in trained), default=-1)
    # What was frozen at first and is trained later is left out by no intent.
    thawed = [row for row in left if trained and _is_thawed(series, row)]
    left = thawed or left
    if not outside and trained and not thawed:
        left = [row for row in left if order.get(row.name, -1) > first_trained]
        if not left or _is_choice(learning, left, trained):
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


def _is_thawed(series: Series, row: LearningParameter) -> bool:
    """Whether it asks for a gradient at the end, and did not in the beginning."""
    asks = [span.asks for _, span in series.spans(row)]
    return bool(asks) and asks[-1] and not asks[0]


def _is_choice(learning: Learning, left: list[LearningParameter], trained: list[LearningParameter]) -> bool:
    """Whether a script may have left out some parameters by intent: more than it trains, or all of a kind. One that
    freezes what it does not train leaves out none that are hardly more than those.
    """
    freezes = any(not any(span.asks for span in row.spans) for row in learning.parameters)
    if freezes and len(left) <= len(trained):
        return sum(map(_count, left)) > MANY_LEFT_OUT * sum(map(_count, trained))
    kinds = {_kind(row.name) for row in trained}
    return len(left) >= len(trained) or kinds.isdisjoint(_kind(row.name) for row in left)


def never_stepped(series: Series, learning: Learning) -> Iterator[LearningFinding]:
    """Optimizers that a script has, and whose step it never calls, though their parameters get gradients."""
    for number, optimizer in enumerate(learning.optimizers):
        own = [row for row in learning.parameters if row.optimizer == number]
        has = sorted({at for row in own for at, span in series.spans(row) if span.asks and span.has})
        is_stepped = optimizer.steps or optimizer.skipped
        if is_stepped or sum(map(series.count_backwards, has)) < LEAST_UNSTEPPED:
            continue
        names = tuple(row.name for row in own if len(has) == 1 or never_changes(series, row.name, row.since))
        if len(names) == len(own):
            step, operator = place_of(series, names[0], has[0], None)
            line = series.backward_line(has[0])
            yield LearningFinding(
                NEVER_STEPPED, names, step, series.backwards[-1], operator, line, optimizer=optimizer.name
            )  # fmt: skip


def frozen(series: Series, learning: Learning) -> Iterator[LearningFinding]:
    """Most of what an optimizer has trained asks for no gradient any more, until the end, and what is left was trained
    before as well: no next phase begins.
    """
    for number, optimizer in enumerate(learning.optimizers):
        spans = {row.name: dict(series.spans(row)) for row in learning.parameters if row.optimizer == number}
        ends = {name: _frozen_from(rows) for name, rows in spans.items()}
        for first in sorted({end for end in ends.values() if end is not None}):
            names = [name for name, end in ends.items() if end == first]
            before = [at for at in series.backwards if at < first]
            after = [at for at in series.backwards if at >= first and steps_in(optimizer.steps, at, at)]
            goes_on = [name for name, rows in spans.items() if any(rows[at].has for at in after if at in rows)]
            goes_on = [name for name in goes_on if name not in names]
            is_next = any(not any(spans[name][at].has for at in before if at in spans[name]) for name in goes_on)
            sizes = {name: _count(series.rows[name]) for name in (*names, *goes_on)}
            is_most = sum(sizes[name] for name in names) >= MOST_FROZEN * sum(sizes.values())
            if len(after) >= LEAST_FROZEN and len(before) >= LEAST_ZERO and goes_on and not is_next and is_most:
                step, operator = place_of(series, names[0], first, None)
                line = line_of(optimizer)
                yield LearningFinding(FROZEN, tuple(names), step, after[-1], operator, line, optimizer=optimizer.name)
                return


def _frozen_from(spans: Mapping[int, GradientSpan]) -> int | None:
    """The iteration from which on until the end a parameter asks for no gradient, which it had before."""
    tail = list(itertools.takewhile(lambda at: not spans[at].asks, sorted(spans, reverse=True)))
    return tail[-1] if tail and any(span.asks and span.has for span in spans.values()) else None


def strays(series: Series, learning: Learning) -> Iterator[LearningFinding]:
    """Parameters that operators read and that have gradients, in no module and in no optimizer, and that stay what they
    are: a script may step some by hand.
    """
    if not learning.optimizers or not any(row.optimizer is not None for row in learning.parameters):
        return
    for stray in learning.strays:
        if stray.optimizer or not _stays(series, stray):
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


def _stays(series: Series, stray: Stray) -> bool:
    """Whether an operator reads one of such a shape that is the same in all iterations; or the dump does not tell."""
    contents: dict[Slot, set[object]] = {}
    for iteration in series.backwards:
        found = series.find(iteration, stray.graph, stray.operator)
        for slot, tensor in found[1].inputs.items() if found is not None else ():
            numbers = series.numbers(tensor) if tuple(tensor.shape) == stray.shape else None
            if numbers is not None:
                contents.setdefault(slot, set()).add(content_of(numbers))
    return not contents or any(len(each) == 1 for each in contents.values())


def _count(row: LearningParameter) -> int:
    return math.prod(row.shape)


def _kind(name: str) -> str:
    """`weight`, of fc.weight."""
    return name.rpartition(".")[2]
