"""Steps of optimizers that change nothing: left out, with a rate of 0, too small, with gradients that are not there."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msdump.analysis.learning.kinds import (
    EMPTY,
    FALLEN,
    KEPT,
    LEAST_ZERO,
    RENEWED,
    SKIPPED,
    STILL,
    LearningFinding,
)
from msdump.analysis.learning.places import line_of, place_of, step_line
from msdump.analysis.learning.series import Series, content_of, is_zero
from msdump.analysis.steps import Slot
from msdump.formats.learning_json import Learning, LearningOptimizer
from msdump.graph.types import SourceLine

# Iterations at the end in which a parameter is the same, with steps of its optimizer in between: a schedule may end
# with a rate of 0, and gradients may be added up for a step.   test: accumulated_gradients, weights_that_never_change
LEAST_STILL = 3
# Steps one after the other that a scaler of the loss skips: it halves the scale each time, from 2^16 on.
# test: scaler_skips_first_steps, report_steps_that_are_all_skipped
LEAST_SKIPPED = 10
# Steps at the end, none of which changes anything, though gradients are no less than this share of the largest.
# test: losses_that_do_not_fall_clipped_away, healthy_trainings_converged
LEAST_LOST, LEAST_SHARE, LEAST_GRADIENT = 4, 0.01, 1e-6
# What is left of the highest learning rate, before how many steps, and for how many at least: one that falls until the
# end of a training is that low in its last steps alone. One that waits for a loss falls behind some steps without it.
# test: losses_that_do_not_fall_rate_per_batch, blind_healthy_trainings_cosine
LOW_RATE, MOST_BEFORE, LEAST_LOW, LEAST_WAITED = 1e-3, 100, 10, 3
# Optimizers of one step each.   test: losses_that_do_not_fall_made_anew
LEAST_RENEWED = 8
# A float32 that is 1 stays 1 where less than half of its last bit is added.
_HALF_BIT = {"float32": 2.0**-25, "float16": 2.0**-12, "bfloat16": 2.0**-9}
_ROUGH = ("float16", "bfloat16")


def steps_in(spans: Iterable[tuple[int, int]], first: int, last: int) -> int:
    """How many of some iterations are in spans."""
    return sum(max(0, min(end, last) - max(begin, first) + 1) for begin, end in spans)


def rate_at(optimizer: LearningOptimizer, iteration: int) -> float | None:
    known = [rate for begin, rate in optimizer.rates if begin <= iteration]
    return known[-1] if known else None


def still(series: Series, told: set[str]) -> Iterator[LearningFinding]:
    """Parameters that are the same in the last iterations though they have gradients and an optimizer steps them."""
    groups: dict[tuple[str, int, int], list[tuple[str, float, str]]] = {}
    for name, rows in series.parameters.items():
        iterations = sorted(rows)
        if name in told or len(iterations) < LEAST_STILL or not (made := series.gradients.get(name)):
            continue
        tail = _same_at_end({at: content_of(rows[at][0]) for at in iterations})
        first, last = tail[-1], tail[0]
        if len(tail) < LEAST_STILL:
            continue
        largest = [series.largest(made[at]) for at in made if first < at <= last]
        gradient = max(largest, default=0.0)
        if not gradient or len([one for one in largest if one]) < LEAST_ZERO:
            continue
        how = _why_still(series, name, rows[last][1].true_dtype, first, last, gradient, rows[last][0].max)
        if how:
            groups.setdefault((how, first, last), []).append((name, gradient, rows[last][1].true_dtype))
    for (how, began, last), rows_of in groups.items():
        name, _, dtype = rows_of[0]
        first = began if began == min(series.by_iteration) else began + 1
        step, operator = place_of(series, name, first, None)
        names = tuple(one for one, _, _ in rows_of)
        numbers = {"gradient": max(size for _, size, _ in rows_of)}
        yield LearningFinding(
            STILL, names, step, last, operator, step_line(series, name, first), how, numbers, dtype=dtype
        )


def lost(series: Series, learning: Learning) -> Iterator[LearningFinding]:
    """All that an optimizer steps stays what it is, though gradients are as large as ever and the rate is not 0."""
    for number, optimizer in enumerate(learning.optimizers):
        own = [name for name, row in series.rows.items() if row.optimizer == number and name in series.gradients]
        steps = [at for at in series.backwards if steps_in(optimizer.steps, at, at)]
        if not own or optimizer.skipped or not all(rate_at(optimizer, at) for at in steps):
            continue
        dumped = [rows for name in own if (rows := series.parameters.get(name))]
        contents = {at: tuple(content_of(rows[at][0]) for rows in dumped if at in rows) for at in steps}
        tail = _same_at_end(contents)
        if len(tail) <= LEAST_LOST:
            continue
        sizes = [[series.largest(made) for made in series.gradients[name].values()] for name in own]
        if any(row[-1] >= LEAST_SHARE * max(row) > 0 and row[-1] >= LEAST_GRADIENT for row in sizes):
            step, operator = place_of(series, own[0], tail[-1], None)
            numbers = {"gradient": max(map(max, sizes))}
            yield LearningFinding(
                STILL, tuple(own), step, steps[-1], operator, line_of(optimizer), "lost", numbers, optimizer.name
            )  # fmt: skip


def fallen(series: Series, learning: Learning) -> Iterator[LearningFinding]:
    """Learning rates that fall to a thousandth within few steps, and stay there for as many more."""
    for number, optimizer in enumerate(learning.optimizers):
        steps = [at for at in series.backwards if steps_in(optimizer.steps, at, at)]
        highest = max((rate for _, rate in optimizer.rates), default=0.0)
        above = [number for number, (_, rate) in enumerate(optimizer.rates) if rate > highest * LOW_RATE]
        if not above or above[-1] + 1 == len(optimizer.rates):
            continue
        begin = optimizer.rates[above[-1] + 1][0]
        before, behind = ([at for at in steps if (at < begin) is is_before] for is_before in (True, False))
        drop = next(at for at, rate in optimizer.rates if rate < highest and at > optimizer.rates[0][0])
        if len(before) > MOST_BEFORE or len(behind) < max(LEAST_LOW, len(before)) or _waits(series, before, drop):
            continue
        names = tuple(row.name for row in learning.parameters if row.optimizer == number)
        if names:
            step, operator = place_of(series, names[0], begin, None)
            numbers = {"rate": rate_at(optimizer, behind[-1]) or 0.0, "rate before": highest}
            yield LearningFinding(
                FALLEN, names, step, behind[-1], operator, line_of(optimizer), "", numbers, optimizer.name
            )  # fmt: skip


def _waits(series: Series, before: Sequence[int], drop: int) -> bool:
    """Whether a loss had been above its smallest value for some steps when its rate began to fall."""
    losses = {at: series.losses[at].value for at in before if at in series.losses and at < drop}
    lowest = min(losses, key=losses.__getitem__, default=0)
    return len([at for at in losses if at > lowest]) >= LEAST_WAITED


def renewed(series: Series, learning: Learning) -> Iterator[LearningFinding]:
    """Optimizers that keep a state, each of which makes one step, of parameters that stay."""
    names = {one.name for one in learning.optimizers} - {"SGD"}
    for name in sorted(names):
        own = [(number, one) for number, one in enumerate(learning.optimizers) if one.name == name]
        is_once = all(len(one.steps) == 1 and one.steps[0][0] == one.steps[0][1] for _, one in own)
        # The last one steps what all have stepped, and no copies of it.
        owners = {row.optimizer for row in learning.parameters if row.optimizer in dict(own)}
        rows = tuple(row.name for row in learning.parameters if row.optimizer == own[-1][0] and not row.since)
        if len(own) >= LEAST_RENEWED and is_once and rows and len(owners) == 1:
            first = own[0][1].steps[0][0]
            step, operator = place_of(series, rows[0], first, None)
            last = max(one.steps[0][0] for _, one in own)
            yield LearningFinding(
                RENEWED, rows, step, last, operator, line_of(own[0][1]), "", {"count": len(own)}, name
            )  # fmt: skip


def without_rate(series: Series) -> Iterator[LearningFinding]:
    """Parameters whose updates, each an operator as in MindSpore, read a gradient and a learning rate of 0."""
    iterations = sorted(series.by_iteration)
    found: list[tuple[str, int, SourceLine | None]] = []
    for step in series.by_iteration[iterations[-1]]:
        for operator in step.operators:
            node = series.node(step, operator)
            slots = None if node is None else _slots_of_update(node.input_names)
            origin = node.inputs[0] if node is not None and slots is not None else None
            if node is None or slots is None or origin is None or origin.name not in series.parameters:
                continue
            same = _same_at_end({at: content_of(row[0]) for at, row in series.parameters[origin.name].items()})
            gradients = []
            for at in same:
                one = series.find(at, step.key.graph_id, operator.label)
                read = [None if one is None else series.numbers(one[1].inputs.get(slot)) for slot in slots]
                if not is_zero(read[1]):
                    break
                gradients.append((at, read[0]))
            moving = [numbers for _, numbers in gradients if numbers is not None and not is_zero(numbers)]
            if len(gradients) >= LEAST_STILL and len(moving) >= LEAST_ZERO:
                found.append((origin.name, gradients[-1][0], node.own_line))
    for first, rows_of in itertools.groupby(sorted(found, key=lambda row: row[1]), key=lambda row: row[1]):
        rows = list(rows_of)
        names = tuple(name for name, _, _ in rows)
        key, parameter = place_of(series, names[0], first, None)
        yield LearningFinding(STILL, names, key, iterations[-1], parameter, rows[0][2], "rate")


def _slots_of_update(names: Sequence[str]) -> tuple[Slot, Slot] | None:
    """Of the gradient and the learning rate; None for another operator."""
    gradient = next((at for at, name in enumerate(names) if name in ("gradient", "grad")), None)
    rate = next((at for at, name in enumerate(names) if name in ("learning_rate", "lr")), None)
    return None if gradient is None or rate is None else (Slot(gradient), Slot(rate))


def never_changes(series: Series, name: str, since: int = 0) -> bool:
    """Whether a parameter is the same after all iterations from one on, of which there are several."""
    rows = [numbers for at, (numbers, _) in series.parameters.get(name, {}).items() if at >= since]
    return len(rows) > 1 and len({content_of(numbers) for numbers in rows}) == 1


def _same_at_end(contents: Mapping[int, object]) -> list[int]:
    """The last iterations that have one content, the latest first."""
    latest = sorted(contents, reverse=True)
    return list(itertools.takewhile(lambda at: contents[at] == contents[latest[0]], latest))


def _why_still(
    series: Series, name: str, dtype: str, first: int, last: int, gradient: float, size: float | None
) -> str:
    """ "rate", "rounding", or "" where nothing tells that it is a fault."""
    row = series.rows.get(name)
    if series.learning is None:
        return "rounding" if dtype in _ROUGH else ""
    if row is None or row.optimizer is None:
        return ""
    optimizer = series.learning.optimizers[row.optimizer]
    # A dump shows what the step of the first of these iterations has left.
    if steps_in(optimizer.steps, first + 1, last) < LEAST_ZERO:
        return ""
    rates = [rate_at(optimizer, at) for at in range(first + 1, last + 1)]
    known = [rate for rate in rates if rate is not None]
    if known and max(known) == 0:
        return "rate"
    if known and known[-1] > known[0]:
        return ""  # it warms up
    gradients = series.gradients[name]
    if series.is_rounding(gradients[max(gradients)]):
        return ""
    if dtype in _ROUGH:
        return "rounding"
    update = max(known, default=math.inf) * (gradient if optimizer.name == "SGD" else 1.0)
    return "rounding" if size and update < _HALF_BIT.get(dtype, 0.0) * abs(size) else ""


def skipped(series: Series, learning: Learning) -> Iterator[LearningFinding]:
    """Optimizers whose last steps a scaler of the loss has left out."""
    for optimizer in learning.optimizers:
        if not optimizer.skipped:
            continue
        last = optimizer.skipped[-1][1]
        began = max((end for _, end in optimizer.steps), default=-1) + 1
        count = steps_in(optimizer.skipped, began, last)
        if began > last or count < LEAST_SKIPPED or began not in series.by_iteration:
            continue
        step = series.by_iteration[began][-1]
        yield LearningFinding(
            SKIPPED, (), step.key, last, step.operators[0], line_of(optimizer), "", {"skipped": count}, optimizer.name
        )


def cleared(series: Series, learning: Learning) -> Iterator[LearningFinding]:
    """Optimizers that never find a gradient though there was one, and those whose gradients nobody clears."""
    for number, optimizer in enumerate(learning.optimizers):
        steps = [at for at in series.backwards if steps_in(optimizer.steps, at, at)]
        if len(steps) <= LEAST_ZERO:
            continue
        own = [row for row in learning.parameters if row.optimizer == number]
        has = any(span.has for row in own for _, span in series.spans(row))
        is_empty = has and all(steps_in(optimizer.empty, at, at) for at in steps)
        is_kept = optimizer.kept >= LEAST_ZERO and optimizer.kept > optimizer.cleared
        if is_kept and all(never_changes(series, row.name, row.since) for row in own):
            continue  # they are cleared, to zeros
        if is_empty or is_kept:
            step, operator = place_of(series, own[0].name if own else "", steps[0], None)
            kind, names = (EMPTY if is_empty else KEPT), tuple(row.name for row in own)
            numbers = {"cleared": optimizer.cleared} if optimizer.cleared else {}
            yield LearningFinding(
                kind, names, step, steps[-1], operator, line_of(optimizer), "", numbers, optimizer.name
            )  # fmt: skip
