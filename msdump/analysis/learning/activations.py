"""Activations that are dead or saturated as a whole from some iteration on, or that grow from layer to layer."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from msdump.analysis.graph_info import GraphFile
from msdump.analysis.learning.kinds import DEAD, DEPTH, LEAST_ZERO, LearningFinding
from msdump.analysis.learning.series import Made, Numbers, Series, norm_of
from msdump.analysis.steps import Operator, Slot
from msdump.operators.kinds import kind_of
from msdump.operators.traits import only_moves

# Iterations at the end in which all elements have one value, though those that are read have several: a small batch may
# reach no unit.   test: report_shard_in_other_units
LEAST_DEAD = 3
# Where a function does not rise any more.
_ENDS = {"relu": (0.0,), "relu6": (0.0, 6.0), "sigmoid": (0.0, 1.0), "hardsigmoid": (0.0, 1.0), "tanh": (-1.0, 1.0)}
_PRODUCTS = ("linear", "matmul", "batch_matmul", "conv")
# How many layers of one kind, by how much each makes of what the one before has made, and all of them in all, by root
# mean square, in the first iterations. Layers that add up what has the same sign at its worst: 2.
# test: blind_neighbours_added_up
LEAST_LAYERS, LAYER_FACTOR, LAYERS_FACTOR = 5, 4.0, 1e4
_DIGITS = re.compile(r"[0-9]+")


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


def explosion(series: Series) -> Iterator[LearningFinding]:
    """Layers of one kind, each of which makes several times as much of the values that it reads."""
    iterations = series.backwards[:LEAST_ZERO]
    if len(iterations) < LEAST_ZERO:
        return
    by_weight = [products(series, at) for at in iterations]
    families: dict[str, list[str]] = {}
    for name in by_weight[0]:
        families.setdefault(_DIGITS.sub("#", name), []).append(name)
    for names in families.values():
        if len(names) < LEAST_LAYERS or not all(
            _grows(series, [each.get(name) for name in names]) for each in by_weight
        ):
            continue
        first, second, last = (by_weight[0][names[at]] for at in (0, 1, -1))
        small, large = (_size(series, made) for made in (first, last))
        made = _steepest(series, first, second)
        node = series.node(made.step, made.operator)
        ratio = (large / small) ** (1 / (len(names) - 1))
        numbers = {"first": small, "last": large, "ratio": ratio}
        line = None if node is None else node.own_line
        yield LearningFinding(
            DEPTH,
            (names[1], names[0], names[-1]),
            made.step.key,
            iterations[-1],
            made.operator,
            line,
            "values",
            numbers,
        )
        return


def products(series: Series, iteration: int) -> dict[str, Made]:
    """By name of a weight, in the order of their use: the first product with it in the forward pass."""
    found: dict[str, Made] = {}
    for step in series.by_iteration[iteration]:
        graph = series.graph(step)
        moved = {name: name for name in series.parameters}
        for node in () if graph is None else graph.nodes:
            weights = [moved[origin.name] for origin in node.inputs if origin is not None and origin.name in moved]
            if weights and only_moves(node.op_type):
                moved[node.full_name] = weights[0]
            elif weights and kind_of(node.op_type) in _PRODUCTS and step.key.iteration is not None:
                known = series.find(iteration, step.key.graph_id, node.full_name)
                if known is not None and known[1].stage == "forward":
                    found.setdefault(weights[-1], Made(*known, 0))
    return found


def _grows(series: Series, layers: Sequence[Made | None]) -> bool:
    sizes = [0.0 if made is None else _size(series, made) for made in layers]
    each = all(0 < before * LAYER_FACTOR <= after for before, after in itertools.pairwise(sizes))
    return each and sizes[-1] >= LAYERS_FACTOR * sizes[0]


def _size(series: Series, made: Made) -> float:
    numbers = series.output(made)
    return 0.0 if numbers is None else norm_of(numbers)


def _steepest(series: Series, first: Made, second: Made) -> Made:
    """The operator behind the first one, up to the second one, that makes most of what it reads."""
    operators = second.step.operators
    if first.step is not second.step:
        return second
    begin, end = operators.index(first.operator) + 1, operators.index(second.operator) + 1
    found, most = second, 0.0
    for operator in operators[begin:end]:
        read = [series.numbers(tensor) for tensor in operator.inputs.values()]
        largest = max((norm_of(numbers) for numbers in read if numbers is not None), default=0.0)
        made = Made(second.step, operator, 0)
        if largest and _size(series, made) / largest > most:
            found, most = made, _size(series, made) / largest
    return found
