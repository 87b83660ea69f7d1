"""Losses that grow, weights that rise or fall at once, gradients that vanish or explode through the model."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from msdump.analysis.learning.kinds import DEPTH, GROWS, LARGE_UPDATE, LEAST_ZERO, LOSSES, SHRINKS, LearningFinding
from msdump.analysis.learning.losses import is_data
from msdump.analysis.learning.places import order_of_use, place_of, step_line
from msdump.analysis.learning.series import Made, Series, norm_of
from msdump.analysis.steps import Operator, Slot, Step
from msdump.formats.learning_json import Learning
from msdump.graph.types import SourceLine
from msdump.operators.kinds import kind_of

# Iterations in a row in each of which a loss rises to 1.5 times what it was, and by how much in all: a batch may be ten
# times as hard as the one before.   test: growing_loss, report_loss_grows_tenfold
LEAST_RISES, RISE, TOTAL_RISE = 3, 1.5, 100.0
# The same where the learning rate rises too, to ten times what it began with: the loss follows it.
# test: blind_factors_multiplied
LEAST_RISES_WITH_RATE, RISE_WITH_RATE, TOTAL_RISE_WITH_RATE, RATE_FACTOR = 4, 1.05, 4.0, 10.0
# Iterations, and by how much the mean of the last third is higher than that of the first, where no loss of the last
# third is as low as one of the first.   test: losses_that_do_not_fall_maximised
LEAST_THIRDS, RISE_OF_THIRDS = 12, 1.5
# What is left of a weight that falls in each iteration: a decay takes a hundredth of a weight, as a rule.
# test: report_weights_that_decay, healthy_trainings_norm
LEAST_LEFT = 1e-3
# By how much the norm of a weight rises in one step, to a root mean square of 1 at least, where it was no more than one
# that is initialised.   test: healthy_trainings_warm_up, report_large_step_kills_a_relu
LARGE_FACTOR, LARGE_SIZE = 10.0, 1.0
# Gradients of the first and the last weight, by root mean square, in every iteration; and how many weights there are.
# Ten layers with PyTorch's own initial weights and ReLU: 1e-4.   test: healthy_trainings_deep, report_sigmoids_in_depth
DEPTH_FACTOR, LEAST_DEPTH = 1e6, 4


def growth(series: Series) -> Iterator[LearningFinding]:
    """A loss that rises steeply in each of the last iterations, or less steeply with its learning rate."""
    losses = series.losses
    iterations = sorted(losses)
    sizes = [abs(losses[at].value) for at in iterations]  # one may fall below 0, without an end
    first = _foot(sizes, RISE)
    rates: dict[str, float] = {}
    if len(sizes) - 1 - first < LEAST_RISES or sizes[-1] < TOTAL_RISE * sizes[first]:
        first = _foot(sizes, RISE_WITH_RATE)
        if len(sizes) - 1 - first < LEAST_RISES_WITH_RATE or sizes[-1] < TOTAL_RISE_WITH_RATE * sizes[first]:
            return
        rates = _rising_rate(series, iterations[first:])
        if not rates:
            return
    begin, end = losses[iterations[first]], losses[iterations[-1]]
    # The first rise is that of the iteration behind the smallest loss.
    rises = losses[iterations[first + 1]]
    numbers = {"before": begin.value, "last": end.value}
    fastest = _fastest(series, iterations[first], iterations[-1])
    names = () if fastest is None else (fastest[0],)
    if fastest is not None:
        numbers["factor"] = fastest[1]
    numbers |= rates or _rate_jump(series, iterations[first])
    yield LearningFinding(GROWS, names, rises.key, iterations[-1], rises.operator, rises.line, "", numbers)


def rises(series: Series, learning: Learning) -> Iterator[LearningFinding]:
    """A loss of data that a script gives, which lies higher in the last third of a training than ever in the first.

    One optimizer makes all steps, after one backward pass each: where two play against each other, one loses.
    """
    iterations = list(series.backwards)
    if len(iterations) < LEAST_THIRDS or len([each for each in learning.optimizers if each.steps]) > 1:
        return
    for step in series.by_iteration[iterations[-1]]:
        graph = series.graph(step)
        for operator in step.operators:
            node = series.node(step, operator) if kind_of(operator.op_type) in LOSSES else None
            if node is None or graph is None or operator.stage != "forward" or len(node.inputs) < 2:
                continue
            given, wanted = node.inputs[:2]
            if wanted is None or given is None or not is_data(series, graph, wanted) or is_data(series, graph, given):
                continue
            found = [series.find(at, step.key.graph_id, operator.label) for at in iterations]
            values = [_mean_of(series, one) for one in found]
            sizes = [value for value in values if value is not None]
            third = len(sizes) // 3
            first, last = sizes[:third], sizes[-third:]
            begin = found[0]
            if len(sizes) < len(iterations) or begin is None or min(last) <= max(first):
                continue
            is_alone = all(series.count_backwards(at) == 1 for at in iterations)
            if is_alone and sum(last) >= RISE_OF_THIRDS * sum(first) and all(map(math.isfinite, sizes)):
                numbers = {"before": sizes[0], "last": sizes[-1]}
                yield LearningFinding(GROWS, (), begin[0].key, iterations[-1], begin[1], node.own_line, "", numbers)
                return


def _mean_of(series: Series, one: tuple[Step, Operator] | None) -> float | None:
    numbers = None if one is None else series.numbers(one[1].outputs.get(Slot(0)))
    return None if numbers is None or numbers.avg is None else float(numbers.avg)


def _foot(sizes: Sequence[float], factor: float) -> int:
    """Where sizes begin to rise by a factor each, until the end."""
    first = len(sizes) - 1
    while first > 0 and 0 < sizes[first - 1] * factor <= sizes[first]:
        first -= 1
    return first


def _rising_rate(series: Series, iterations: Sequence[int]) -> dict[str, float]:
    """A learning rate that has risen in each of some iterations, and many times in all since the first step."""
    for optimizer in () if series.learning is None else series.learning.optimizers:
        rates = dict(optimizer.rates)
        before, values = next(iter(rates.values()), 0.0), list(rates.values())
        # The loss of an iteration is that of the weights that the one before has left.
        rises = all(at in rates for at in iterations[:-1]) and values == sorted(values)
        last = rates.get(iterations[-2], 0.0)
        if rises and last >= RATE_FACTOR * before > 0:
            return {"rate": last, "rate before": before}
    return {}


def _fastest(series: Series, first: int, last: int) -> tuple[str, float] | None:
    """The parameter whose norm rises most from one iteration to another, and by which factor."""
    factors = [
        (norm_of(rows[last][0]) / before, name)
        for name, rows in series.parameters.items()
        if first in rows and last in rows and (before := norm_of(rows[first][0])) > 0
    ]
    factor, name = max(factors, default=(0.0, ""))
    return (name, factor) if factor >= RISE else None


def _rate_jump(series: Series, iteration: int) -> dict[str, float]:
    """A learning rate that has risen to ten times what it was, in the iteration or the one before."""
    for optimizer in () if series.learning is None else series.learning.optimizers:
        for (_, before), (begin, rate) in itertools.pairwise(optimizer.rates):
            if begin in (iteration - 1, iteration) and rate >= 10 * before > 0:
                return {"rate": rate, "rate before": before}
    return {}


def large_updates(series: Series) -> Iterator[LearningFinding]:
    """The first weights whose norm rises at once far beyond that of a weight."""
    found: dict[int, list[tuple[float, str]]] = {}
    for name, rows in series.parameters.items():
        if series.learning is not None and name not in series.rows:
            continue  # a buffer
        iterations = sorted(rows)
        if len(rows[iterations[0]][1].shape) < 2:
            continue
        sizes = [norm_of(rows[at][0]) for at in iterations]
        # Of the first iteration, what its step has left, and what it was before.
        sizes[:0] = [norm_of(series.initial[name]) if name in series.initial else sizes[0]]
        for after, (old, new) in zip(iterations, itertools.pairwise(sizes), strict=True):
            if 0 < old * LARGE_FACTOR <= new and new >= LARGE_SIZE:
                found.setdefault(after, []).append((new / old, name))
                break
    if found:
        after = min(found)
        factor, name = max(found[after])
        step, operator = place_of(series, name, after, None)
        names = tuple(each for _, each in sorted(found[after], reverse=True))
        numbers = {"factor": factor} | _rate_jump(series, after)
        yield LearningFinding(LARGE_UPDATE, names, step, after, operator, step_line(series, name, after), "", numbers)


def shrinking(series: Series) -> Iterator[LearningFinding]:
    """Weights that fall towards 0 in each iteration."""
    names: list[tuple[float, str]] = []
    for name, rows in series.parameters.items():
        sizes = [norm_of(rows[at][0]) for at in sorted(rows)]
        is_weight = len(next(iter(rows.values()))[1].shape) > 1 and (series.learning is None or name in series.rows)
        falls = [after <= before / RISE for before, after in itertools.pairwise(sizes) if before]
        if is_weight and len(falls) >= LEAST_RISES and all(falls) and sizes[-1] <= sizes[0] * LEAST_LEFT:
            names.append((sizes[-1] / sizes[0], name))
    if names:
        factor, name = min(names)
        iterations = sorted(series.parameters[name])
        step, operator = place_of(series, name, iterations[0], None)
        line, blamed = step_line(series, name, iterations[0]), tuple(each for _, each in sorted(names))
        yield LearningFinding(SHRINKS, blamed, step, iterations[-1], operator, line, "", {"factor": factor})


def depth(series: Series) -> Iterator[LearningFinding]:
    """Gradients of weights, or of biases, that fall or rise through the model, in every iteration."""
    order = order_of_use(series)
    for has_axes in (True, False):
        names = [
            name
            for name, made in series.gradients.items()
            if name in order
            and (len((first := next(iter(made.values()))).shape) > 1) == has_axes
            and not series.is_rounding(first)
        ]
        names.sort(key=order.__getitem__)
        found = _depth_of(series, names) if len(names) >= LEAST_DEPTH else None
        if found is not None:
            yield found
            return


def _depth_of(series: Series, names: Sequence[str]) -> LearningFinding | None:
    """names: of parameters, in the order in which the forward pass reads them"""
    iterations = [at for at in series.backwards if all(at in series.gradients[name] for name in names)]
    sizes = {at: [_norm(series, series.gradients[name][at]) for name in names] for at in iterations}
    # Those of a scaled loss may be Inf, and a scaler skips their step.
    sizes = {at: row for at, row in sizes.items() if all(map(math.isfinite, row))}
    if len(sizes) < LEAST_ZERO or not all(all(row) for row in sizes.values()):
        return None
    for how, sign in (("vanishes", 1), ("explodes", -1)):
        least = min(math.log10(row[-1] / row[0]) * sign for row in sizes.values())
        if least < math.log10(DEPTH_FACTOR):
            continue
        begins = next(iter(sizes))
        row = sizes[begins]
        steps = [math.log10(after / before) * sign for before, after in itertools.pairwise(row)]
        usual = least / len(steps) / 2
        begin = next((at for at in range(len(steps) - 1, -1, -1) if steps[at] >= usual), len(steps) - 1)
        made = series.gradients[names[begin]][begins]
        numbers = {"first": row[0], "last": row[-1], "ratio": 10 ** (sum(steps) / len(steps))}
        line, blamed = _first_line(series, made), (names[begin], names[0], names[-1])
        return LearningFinding(DEPTH, blamed, made.step.key, iterations[-1], made.operator, line, how, numbers)
    return None


def _first_line(series: Series, made: Made) -> SourceLine | None:
    """The line of the forward pass whose gradient an operator hands on."""
    while True:
        node = series.node(made.step, made.operator)
        if node is None:
            return None
        if len(set(node.source)) > 1:
            return node.own_line
        source = series.maker(made.step, node.inputs[0]) if node.inputs else None
        if source is None:
            return node.own_line
        made = source


def _norm(series: Series, made: Made) -> float:
    numbers = series.output(made)
    return 0.0 if numbers is None else norm_of(numbers)
