"""What is the same in all iterations and should not be: random numbers, and a loss that optimizers step."""

from __future__ import annotations

from collections.abc import Iterator

from msdump.analysis.learning.kinds import LOSS_STILL, REPEATS, LearningFinding
from msdump.analysis.learning.series import Numbers, Series, content_of
from msdump.analysis.learning.updates import steps_in
from msdump.analysis.steps import Operator, Slot, Step
from msdump.formats.learning_json import Learning
from msdump.operators.traits import is_random, memory_use
from msdump.tensors import dtypes

# Iterations in each of which it is the same, from the first one on: a training that has ended moves no more.
# test: report_weights_loaded_in_each_step, healthy_trainings_hinge, report_seed_in_the_loop
LEAST_SAME = 4


def repeats(series: Series) -> Iterator[LearningFinding]:
    """Random numbers that are drawn anew in each iteration, and are the same. Whole numbers, and what an operator
    writes into memory as weights are initialised, may be so by intent.
    """
    iterations = list(series.backwards)[1:]  # what the first one draws before a module is called is no part of it
    if len(iterations) < LEAST_SAME or not series.losses:
        return
    for step in series.by_iteration[iterations[0]]:
        for operator in step.operators:
            if not is_random(operator.op_type) or memory_use(operator.op_type).overwrites:
                continue
            key = step.key.graph_id, operator.label
            drawn = [found for at in iterations if (found := series.find(at, *key)) is not None]
            contents = {_drawn(series, one) for _, one in drawn}
            if len(drawn) == len(iterations) and len(contents) == 1 and None not in contents:
                node = series.node(step, operator)
                line = None if node is None else node.own_line
                yield LearningFinding(REPEATS, (), step.key, iterations[-1], operator, line)
                return  # the others are of the same cause


def _drawn(series: Series, operator: Operator) -> tuple[object, ...] | None:
    """None where equal statistics do not tell equal numbers."""
    tensor = operator.outputs.get(Slot(0))
    numbers: Numbers | None = series.numbers(tensor)
    kind = None if tensor is None else dtypes.BY_NAME.get(tensor.dtype)
    if numbers is None or kind is None or not kind.is_float or numbers.max == numbers.min or numbers.l2norm is None:
        return None
    return content_of(numbers)


def loss_still(series: Series, learning: Learning) -> Iterator[LearningFinding]:
    """A loss that is the same in all iterations, as is what it is computed of, though optimizers make their steps."""
    losses = series.losses
    iterations = sorted(losses)
    if (
        len(iterations) < LEAST_SAME
        or len({losses[at].value for at in iterations}) > 1
        or not losses[iterations[0]].value
    ):
        return
    first, last = iterations[0], iterations[-1]
    stepping = [one for one in learning.optimizers if steps_in(one.steps, first, last) >= LEAST_SAME - 1]
    operands = {_operands(series, at) for at in iterations}
    if stepping and any(rate for _, rate in stepping[0].rates) and len(operands) == 1 and None not in operands:
        loss = losses[first]
        numbers = {"loss": loss.value}
        yield LearningFinding(LOSS_STILL, (), loss.key, last, loss.operator, loss.line, numbers=numbers)


def _operands(series: Series, iteration: int) -> tuple[object, ...] | None:
    loss = series.losses[iteration]
    found: tuple[Step, Operator] | None = series.find(iteration, loss.key.graph_id, loss.operator.label)
    read = [] if found is None else [series.numbers(tensor) for tensor in found[1].inputs.values()]
    known = [content_of(numbers) for numbers in read if numbers is not None]
    return tuple(known) or None
