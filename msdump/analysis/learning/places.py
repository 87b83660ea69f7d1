"""Where a finding on a training points: an operator, a parameter, the line of a step."""

from __future__ import annotations

from msdump.analysis.learning.series import Made, Series
from msdump.analysis.steps import Operator, StepKey
from msdump.formats.learning_json import LearningOptimizer
from msdump.graph.types import SourceLine


def order_of_use(series: Series) -> dict[str, int]:
    """By name of a parameter: the place of the first operator that reads it."""
    order: dict[str, int] = {}
    for step in next(iter(series.by_iteration.values())):
        graph = series.graph(step)
        for node in () if graph is None else graph.nodes:
            for origin in node.inputs:
                if origin is not None and origin.slot is None:
                    order.setdefault(origin.name, len(order))
    return order


def place_of(series: Series, name: str, iteration: int, made: Made | None) -> tuple[StepKey, Operator]:
    """Where a finding on a parameter points: the parameter as it was dumped, or who made its gradient."""
    for step in series.by_iteration.get(iteration, ()):
        for operator in reversed(step.operators):
            if operator.is_parameter and operator.op_name == name:
                return step.key, operator
    if made is not None:
        return made.step.key, made.operator
    step = series.by_iteration[iteration][0]
    return step.key, step.operators[-1]


def line_of(optimizer: LearningOptimizer) -> SourceLine | None:
    """Of its steps."""
    return SourceLine(optimizer.path, optimizer.line, optimizer.code) if optimizer.line else None


def step_line(series: Series, name: str, iteration: int) -> SourceLine | None:
    """The line at which the optimizer of a parameter makes its step; None where nothing tells."""
    row = series.rows.get(name)
    if series.learning is not None and row is not None and row.optimizer is not None:
        return line_of(series.learning.optimizers[row.optimizer])
    for step in reversed(series.by_iteration.get(iteration, ())):
        for operator in step.operators:
            if "optimizer-" in operator.label:
                node = series.node(step, operator)
                return None if node is None else node.own_line
    return None
