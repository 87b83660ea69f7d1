"""What becomes of values that are not finite: whether they reach an end of the program, or are dropped on the way; and
which steps of training were skipped because of them.

A NaN that a choice drops (`where`, `masked_fill`), and that no gradient brings back, has spoiled nothing. A scaler of
the loss that finds gradients which are not finite skips the step, as it is meant to.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from msdump.analysis.find._health import HealthTable
from msdump.analysis.find._infinity_flow import GRADIENTS, InfinityFlow, OutputKey
from msdump.analysis.graph_info import GraphFile, GraphNode
from msdump.analysis.steps import Operator, Step
from msdump.operators.traits import checks_gradients, drops_nan, is_test, memory_use, only_moves, tests_finite

# Operators between a gradient and the test of it: it is divided by the scale, and added up over the devices.
_LONGEST_WAY = 8


def mark_ends(flows: Sequence[InfinityFlow]) -> None:
    """Fill `reaches_end` and `read_later` of the graphs of one iteration of one rank.

    flows   in the order in which they ran
    """
    by_graph = {flow.graph_id: flow for flow in flows}
    for flow in reversed(flows):
        _mark(flow, by_graph)


def _mark(flow: InfinityFlow, by_graph: Mapping[int | None, InfinityFlow]) -> None:
    flow.reaches_end = [False] * len(flow.operators)
    read: set[OutputKey] = set()
    # With the operator that takes it further.
    alive: dict[OutputKey, Operator] = dict(flow.read_later)
    for index in range(len(flow.operators) - 1, -1, -1):
        operator = flow.operators[index]
        inputs = [bad for bad in flow.inputs[index] if bad.health.has_nan]
        outputs = [(index, bad.slot) for bad in flow.outputs[index] if bad.health.has_nan]
        if not inputs and not outputs:
            continue
        # A view that no operator reads changes nothing, as a comparison; what is written in place stays in memory.
        moves = only_moves(operator.op_type) and not memory_use(operator.op_type).overwrites
        if outputs:
            is_end = any(key in alive or (key not in read and not moves) for key in outputs)
        else:
            is_end = not drops_nan(operator.op_type)
        if (moves and not is_end) if outputs else is_test(operator.op_type):
            continue
        flow.reaches_end[index] = is_end
        further = next((alive[key] for key in outputs if key in alive), operator) if moves else operator
        for bad in inputs:
            source = flow.source(index, bad)
            if source is not None:
                read.add(source)
                if is_end:
                    alive.setdefault(source, further)
            elif is_end:
                _tell_earlier(flow, index, bad.slot.number, further, by_graph)


def _tell_earlier(
    flow: InfinityFlow, index: int, slot: int, operator: Operator, by_graph: Mapping[int | None, InfinityFlow]
) -> None:
    """An input that an earlier graph made: it was not dropped there after all."""
    made = flow.made_elsewhere(index, slot)
    earlier = None if made is None else by_graph.get(made[0])
    if made is not None and earlier is not None and earlier is not flow:
        output = earlier.output_of(made[1], made[2])
        if output is not None:
            earlier.read_later.setdefault(output, operator)


def skips_step(steps: Iterable[Step], health: HealthTable, graphs: Mapping[int, GraphFile | None]) -> bool:
    """Whether a scaler of the loss has found gradients that are not finite, in the graphs of one iteration.

    graphs   by the identity of the step
    """
    for step in steps:
        if _only_tests_gradients(step, health, graphs.get(id(step))):
            return True
        for operator in step.operators:
            names = checks_gradients(operator.op_type)
            if names is None:
                continue
            graph = graphs.get(id(step))
            node = None if graph is None else graph.find(operator.full_name, operator.op_name)
            given = () if node is None else node.input_names
            flags = {slot for slot, name in enumerate(given) if name in names}
            found = [tensor for slot, tensor in operator.inputs.items() if slot.number in flags]
            # It is written in place: an output of one element, be it among gradients.
            found += [tensor for tensor in operator.outputs.values() if math.prod(tensor.shape) == 1]
            if any((health.of(tensor).largest or 0) > 0 or health.of(tensor).has_inf for tensor in found):
                return True
    return False


def _only_tests_gradients(step: Step, health: HealthTable, graph: GraphFile | None) -> bool:
    """Whether gradients that are not finite are tested, and nothing else outside of the backward pass reads them.

    Edges: False without a graph file, which tells what is tested; an optimizer that reads them all the same has not
           skipped the step.
    """
    if graph is None:
        return False
    readers = [
        (operator, graph.find(operator.full_name, operator.op_name))
        for operator in step.operators
        if any(health.of(tensor).is_bad for tensor in operator.inputs.values()) and not is_of_gradients(operator)
    ]
    ways = [_way_from_gradients(graph, node) for operator, node in readers if node and tests_finite(operator.op_type)]
    passed = set().union(*(way for way in ways if way is not None))
    return any(way is not None for way in ways) and all(
        is_test(operator.op_type) or (node is not None and node.full_name in passed) for operator, node in readers
    )


def _way_from_gradients(graph: GraphFile, node: GraphNode) -> set[str] | None:
    """Full names of the operators between the backward pass and a node that reads what it made; None where it does not
    read any of it.
    """
    way: set[str] = set()
    is_reached = False
    nodes = [node]
    for _ in range(_LONGEST_WAY):
        origins = [origin for each in nodes for origin in each.inputs if origin is not None]
        names = {origin.name for origin in origins if origin.slot is not None}
        is_reached |= any(name.startswith(GRADIENTS) for name in names)
        before = {name for name in names if not name.startswith(GRADIENTS)} - way
        way |= before
        nodes = [graph.by_name[name] for name in before if name in graph.by_name]
    return way if is_reached else None


def is_of_gradients(operator: Operator) -> bool:
    """Whether an operator computes gradients, as its name tells."""
    return operator.label.startswith(GRADIENTS)
