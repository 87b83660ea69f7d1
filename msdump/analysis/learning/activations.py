"""Activations that are dead or saturated as a whole from some iteration on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from msdump.analysis.graph_info import GraphFile
from msdump.analysis.learning.kinds import DEAD, LearningFinding
from msdump.analysis.learning.series import Numbers, Series
from msdump.analysis.steps import Operator, Slot
from msdump.operators.kinds import kind_of
from msdump.operators.traits import only_moves

# Iterations at the end in which all elements have one value, though those that are read have several: a small batch may
# reach no unit.   test: report_shard_in_other_units, test_an_activation_that_dies
LEAST_DEAD = 3
# Where a function does not rise any more.
_ENDS = {"relu": (0.0,), "relu6": (0.0, 6.0), "sigmoid": (0.0, 1.0), "hardsigmoid": (0.0, 1.0), "tanh": (-1.0, 1.0)}
_PRODUCTS = ("linear", "matmul", "batch_matmul", "conv")


def dead(series: Series) -> Iterator[LearningFinding]:
    """Functions of the model that give one number for everything they read, and did not do so before. Those of a loss,
    as of a hinge that all samples have passed, are read by no product with a weight.
    """
    iterations = list(series.backwards)
    for step in series.by_iteration[iterations[-1]] if len(iterations) > LEAST_DEAD else ():
        for operator in step.operators:
            if kind_of(operator.op_type) not in _ENDS or not _is_at_its_end(series, operator):
                continue
            found = [series.find(at, step.key.graph_id, operator.label) for at in iterations]
            states = [None if one is None else _is_at_its_end(series, one[1]) for one in found]
            count = len(list(itertools.takewhile(bool, reversed(states))))
            graph, begin = series.graph(step), found[-count]
            if count < LEAST_DEAD or False not in states or begin is None or graph is None:
                continue
            if operator.stage == "forward" and _meets_weight(series, graph, operator.label):
                node = series.node(*begin)
                numbers = series.numbers(operator.outputs.get(Slot(0)))
                value = 0.0 if numbers is None else float(numbers.max or 0.0)
                line = None if node is None else node.own_line
                yield LearningFinding(
                    DEAD, (), begin[0].key, iterations[-1], begin[1], line, numbers={"value": value}
                )  # fmt: skip


def _is_at_its_end(series: Series, operator: Operator) -> bool:
    """Whether all is one value at which the function does not rise, and what it reads is not one value."""
    made, read = (series.numbers(side.get(Slot(0))) for side in (operator.outputs, operator.inputs))
    return made is not None and _is_one(made) and made.max in _ENDS[kind_of(operator.op_type)] and not _is_one(read)


def _is_one(numbers: Numbers | None) -> bool:
    return numbers is None or (numbers.max == numbers.min and not numbers.nan)


def _meets_weight(series: Series, graph: GraphFile, label: str) -> bool:
    """Whether a product with a parameter reads what an operator has made, as it is or moved."""
    reached, weights = {label}, set(series.parameters)
    for node in graph.nodes:
        names = {origin.name for origin in node.inputs if origin is not None}
        if kind_of(node.op_type) in _PRODUCTS and names & reached and names & weights:
            return True
        if only_moves(node.op_type):
            reached |= {node.full_name} if names & reached else set()
            weights |= {node.full_name} if names & weights else set()
    return False
