"""Averages that forget: sides that are swapped, or a momentum that is meant the other way round."""

from __future__ import annotations

import math
from collections.abc import Iterator

from msdump.analysis.graph_info import Origin
from msdump.analysis.learning.kinds import FORGETS, LearningFinding
from msdump.analysis.learning.series import Series
from msdump.analysis.steps import Operator, Slot, Step
from msdump.operators.kinds import kind_of

# Iterations, the last ones, in each of which it is so: an average may begin as a copy.
# test: trainings_that_mix_up_swapped_average
LEAST_FORGETTING = 4
# What an average keeps of itself at most: a copy keeps nothing, and is meant.
# test: trainings_that_mix_up_swapped_average, trainings_that_mix_up_momentum_of_another_framework
MOST_KEPT = 0.1
_CLOSE = 1e-3  # two shares of an average are 1 in all


def forgetting(series: Series) -> Iterator[LearningFinding]:
    """The first average of weights, and the first running statistics of a norm, that hardly keep what they were."""
    iterations = list(series.backwards)[-LEAST_FORGETTING:]
    if len(iterations) < LEAST_FORGETTING:
        return
    told: set[str] = set()
    for step in series.by_iteration[iterations[-1]]:
        for operator in step.operators:
            node = series.node(step, operator) if operator.stage == "forward" else None
            how = "" if node is None else _how(kind_of(operator.op_type))
            if node is None or not how or how in told:
                continue
            each = [series.find(at, step.key.graph_id, operator.label) for at in iterations]
            kept = [None if one is None else _kept(series, *one) for one in each]
            shares = [share for share in kept if share is not None and 0 < share <= MOST_KEPT + _CLOSE]
            first = each[0]
            if len(shares) < LEAST_FORGETTING or first is None:
                continue
            told.add(how)
            numbers = {"share": shares[-1]}
            yield LearningFinding(
                FORGETS, (), first[0].key, iterations[-1], first[1], node.own_line, how, numbers
            )  # fmt: skip


def _how(kind: str) -> str:
    return {"batch_norm": "statistics", "add": "average", "lerp": "average"}.get(kind, "")


def _kept(series: Series, step: Step, operator: Operator) -> float | None:
    """Which share of itself an average keeps; None for what is none."""
    node, kind = series.node(step, operator), kind_of(operator.op_type)
    attrs = {} if node is None or node.attrs is None else node.attrs
    if node is None:
        return None
    if kind == "batch_norm":
        # In evaluation it computes no statistics.
        own, momentum = series.numbers(operator.outputs.get(Slot(1))), attrs.get("momentum")
        is_trained = own is not None and own.max is not None and len(node.inputs) > 3 and node.inputs[3] is not None
        return 1 - momentum if is_trained and isinstance(momentum, float) else None
    if len(node.inputs) != 2:
        return None
    if kind == "lerp":
        weight = attrs.get("weight")
        is_average = _is_entry(series, step, node.inputs[0]) and _is_trained(series, step, node.inputs[1])
        return 1 - weight if is_average and isinstance(weight, float) else None
    first, second = (_scaled(series, step, origin) for origin in node.inputs)
    alpha = attrs.get("alpha", 1)
    if first is None or second is None or not isinstance(alpha, int | float):
        return None
    shares = first[0], second[0] * alpha
    if not math.isclose(sum(shares), 1, abs_tol=_CLOSE):
        return None
    for left, right, share in ((first, second, shares[0]), (second, first, shares[1])):
        if _is_entry(series, *left[1:]) and _is_trained(series, *right[1:]):
            return share
    return None


def _scaled(series: Series, step: Step, origin: Origin | None) -> tuple[float, Step, Origin | None] | None:
    """The number by which an operand was multiplied, and what it was before; None where a tensor was."""
    made = series.maker(step, origin)
    node = None if made is None else series.node(made.step, made.operator)
    if made is None or node is None or kind_of(made.operator.op_type) != "mul" or made.operator.stage != "forward":
        return 1.0, step, origin
    factor = (node.attrs or {}).get("other")
    return (float(factor), made.step, node.inputs[0]) if isinstance(factor, int | float) and node.inputs else None


def _is_entry(series: Series, step: Step, origin: Origin | None) -> bool:
    """Whether an operand is what a script keeps, and no optimizer steps."""
    entry = series.entry_of(step, origin)
    row = None if entry is None else series.rows.get(entry.name)
    return entry is not None and (row is None or row.optimizer is None)


def _is_trained(series: Series, step: Step, origin: Origin | None) -> bool:
    """Whether an operand is a parameter that an optimizer steps, or what its step has made."""
    made = series.before_moves(step, origin)
    entry = None if made is not None else series.entry_of(step, origin)
    row = None if entry is None else series.rows.get(entry.name)
    is_stepped = row is not None and row.optimizer is not None
    return is_stepped if made is None else made.operator.stage == "optimizer"
