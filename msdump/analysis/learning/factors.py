"""What an optimizer multiplies in each of its steps: a state that grows without an end, weights that decay at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msdump.analysis.graph_info import GraphNode
from msdump.analysis.learning.kinds import DECAYS, GAINS, STILL, LearningFinding
from msdump.analysis.learning.places import line_of, place_of
from msdump.analysis.learning.series import Numbers, Series, norm_of
from msdump.analysis.learning.updates import rate_at, steps_in
from msdump.analysis.steps import Operator, Slot
from msdump.formats.learning_json import Learning
from msdump.operators.kinds import kind_of_each
from msdump.operators.traits import memory_use

# Steps in each of which it is so.
LEAST_STEPS = 4
# The share of a weight that a decay takes in each step, and what is left of their norm in the end: with a rate of 0.01
# a decay of 0.1 takes a thousandth.   test: losses_that_do_not_fall_decayed
LARGE_DECAY, LEAST_LEFT = 0.02, 0.5
# The share of its size by which a step changes a weight, and steps: a million of these change it once.
# test: losses_that_do_not_fall_clipped_away
SMALL_SHARE, LEAST_SMALL = 1e-6, 8


class _Factor(NamedTuple):
    operator: Operator
    node: GraphNode
    value: float
    name: str  # of the parameter, or ""


def gains(series: Series, learning: Learning) -> Iterator[LearningFinding]:
    """A state that is multiplied by 1 or more in each step, as a momentum above 1 does, or a weight by more than 1."""
    for number, found in _by_optimizer(series, learning).items():
        grown = [one for one in found if one.value > 1 or (one.value == 1 and not one.name)]
        if grown:
            optimizer, factor = learning.optimizers[number], max(one.value for one in grown)
            step = series.by_iteration[series.backwards[0]][-1].key
            yield LearningFinding(
                GAINS, tuple(one.name for one in grown if one.name), step, series.backwards[-1], grown[0].operator,
                line_of(optimizer), "", {"factor": factor}, optimizer.name,
            )  # fmt: skip


def decays(series: Series, learning: Learning) -> Iterator[LearningFinding]:
    """Weights of which a decay takes a large share in each step, until little of them is left."""
    for number, found in _by_optimizer(series, learning).items():
        optimizer = learning.optimizers[number]
        shares = {one.name: 1 - one.value for one in found if one.name and one.value <= 1 - LARGE_DECAY}
        names = tuple(name for name in shares if len(series.rows[name].shape) > 1)
        first, last = series.backwards[0], series.backwards[-1]
        if names and 0 < _norm(series, names, last) <= LEAST_LEFT * _norm(series, names, first):
            step, operator = place_of(series, names[0], first, None)
            share = {"share": max(map(shares.__getitem__, names))}
            yield LearningFinding(
                DECAYS, names, step, last, operator, line_of(optimizer), "", share, optimizer.name
            )  # fmt: skip


def _norm(series: Series, names: Iterable[str], iteration: int) -> float:
    """Of several parameters together; 0 where one is missing."""
    found = [series.parameters.get(name, {}).get(iteration) for name in names]
    return math.hypot(*(row[0].l2norm or 0.0 for row in found if row is not None)) if None not in found else 0.0


def _by_optimizer(series: Series, learning: Learning) -> Mapping[int, Sequence[_Factor]]:
    """Factors by number of an optimizer, of those that make steps in all iterations and in the last one."""
    found: dict[int, list[_Factor]] = {}
    last = series.backwards[-1]
    stepping = [one for one, each in enumerate(learning.optimizers) if steps_in(each.steps, last, last)]
    names: dict[str, int] = {}
    for number in stepping:  # the second one of a class is called optimizer-Adam-1
        name = learning.optimizers[number].name
        count = sum(each.name == name for each in learning.optimizers[:number])
        names[f"{name}-{count}" if count else name] = number
    for step in series.by_iteration[last]:
        for operator in step.operators:
            if operator.stage != "optimizer" or kind_of_each(operator.op_type) not in ("mul", "add"):
                continue
            node = series.node(step, operator)
            factor = None if node is None else _factor_of(series, learning, operator, node)
            owner = names.get(operator.label.partition("optimizer-")[2].partition("/")[0])
            if factor is not None and owner is not None and learning.optimizers[owner].name != "LBFGS":
                at_all = series.backwards[-LEAST_STEPS:]
                if len([at for at in at_all if series.find(at, step.key.graph_id, operator.label)]) == LEAST_STEPS:
                    found.setdefault(owner, []).append(factor)
    return found


def _factor_of(series: Series, learning: Learning, operator: Operator, node: GraphNode) -> _Factor | None:
    """By what an operator multiplies what it writes over, or what a decay that is part of a gradient comes to."""
    attrs, first = node.attrs or {}, node.inputs[0] if node.inputs else None
    if first is None:
        return None
    if kind_of_each(operator.op_type) == "mul":
        value = next((_number(attrs[name]) for name in ("other", "scalar") if name in attrs), None)
        is_state = first.slot is None and first.maker is None
        if value is None or len(node.inputs) > 1 or not memory_use(operator.op_type).overwrites or not is_state:
            return None
        name = first.name if first.name in series.rows else ""
        return _Factor(operator, node, value, name)
    weight = node.inputs[1] if len(node.inputs) == 2 else None
    row = None if weight is None else series.rows.get(weight.name)
    alpha = _number(attrs.get("alpha"))
    if row is None or row.optimizer is None or alpha is None:
        return None
    optimizer = learning.optimizers[row.optimizer]
    rate = rate_at(optimizer, series.backwards[-1]) if optimizer.name == "SGD" else None
    return None if rate is None else _Factor(operator, node, 1 - rate * alpha, row.name)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def too_small(series: Series, learning: Learning) -> Iterator[LearningFinding]:
    """All weights of an optimizer, each of whose steps changes none of them by more than a millionth of its size."""
    for number, optimizer in enumerate(learning.optimizers):
        steps = [at for at in series.backwards if steps_in(optimizer.steps, at, at)]
        own = [row for row in learning.parameters if row.optimizer == number and len(row.shape) > 1]
        rates = [rate for _, rate in optimizer.rates]
        # A rate that rises is a warm-up, one of 0 has a finding of its own.
        if len(steps) < LEAST_SMALL or not own or not rates or max(rates) > rates[0] or not rates[0]:
            continue
        shares = [_share(series, row.name, at, optimizer.name, rate_at(optimizer, at)) for row in own for at in steps]
        known = [share for share in shares if share is not None]
        if len(known) == len(shares) and max(known) <= SMALL_SHARE and max(known):
            step, operator = place_of(series, own[0].name, steps[0], None)
            names = tuple(row.name for row in own)
            yield LearningFinding(
                STILL, names, step, steps[-1], operator, line_of(optimizer), "small", {"share": max(known)}
            )  # fmt: skip


def _share(series: Series, name: str, iteration: int, optimizer: str, rate: float | None) -> float | None:
    """Of its size by which a step changes a weight; None where nothing tells."""
    row = series.parameters.get(name, {}).get(iteration)
    if row is None or rate is None or not (size := norm_of(row[0])):
        return None
    if optimizer != "SGD":
        return rate / size
    written = _step_of(series, name, iteration)
    return None if written is None else rate * norm_of(written) / size


def _step_of(series: Series, name: str, iteration: int) -> Numbers | None:
    """What SGD adds to a parameter, but for the learning rate."""
    for step in series.by_iteration[iteration]:
        for operator in step.operators if step.key.iteration is not None else ():
            if operator.stage != "optimizer" or not memory_use(operator.op_type).overwrites:
                continue
            node = series.node(step, operator)
            first = node.inputs[0] if node is not None and len(node.inputs) == 2 else None
            if first is not None and first.name == name:
                return series.numbers(operator.inputs.get(Slot(1)))
    return None
