"""What of the model a tensor is, in a user's words: `fc.weight`, or `gradient of fc.weight`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import TypeAlias

from msdump.analysis.graph_info import GraphFile, GraphFiles, GraphNode
from msdump.analysis.stat.rows import TensorStatistics
from msdump.analysis.steps import StepKey
from msdump.operators.traits import memory_use, only_moves
from msdump.tensors.records import INPUT, OUTPUT

GRADIENT_OF = "gradient of "
# A value of a graph as `Origin` names it: output of an operator, or an input of the graph, whose slot is None.
_Value: TypeAlias = "tuple[str, int | None]"
_Shapes: TypeAlias = "Mapping[tuple[str, str, int], tuple[int, ...]]"
# `other[3]`, an argument of an operator on lists.
_IN_LIST = re.compile(r"(?P<list>\w+)\[(?P<place>[0-9]+)\]")
_LIST_IN_PLACE = re.compile(r"aten\._(?:foreach|fused)_\w*[a-z0-9]_\.\w+")
# Its result is what it reads from elsewhere, whatever was there before.
_COPY = re.compile(r"aten\.(?:_foreach_)?copy_\.\w+")
# What they leave of a gradient is that gradient still: clipped, scaled back, reduced over the ranks.
_KEEP = re.compile(r"aten\.(?:_foreach_)?(?:mul|div)_\.\w+|_?c10d\w*\..+")


def subjects_of(rows: Sequence[TensorStatistics], graphs: GraphFiles) -> list[str | None]:
    """The parameter or buffer that each tensor is, or `gradient of` one; None for others.

    In the iteration that made the model its operators read, by the graph, what initialised a parameter. There an input
    is the parameter whose content it has.

    Edges: PyTorch says of no tensor that it is a gradient. It is known by where it goes: in the parameter's shape into
           an operator that writes the parameter. Without graph files dumped parameters alone are known.
    """
    data = graphs.data_inputs
    dumped = {row.tensor.op_name for row in rows if row.operator is not None and row.operator.is_parameter} - data
    shapes: dict[StepKey, dict[tuple[str, str, int], tuple[int, ...]]] = {}
    for row in rows:
        if row.node is not None:
            of_step = shapes.setdefault(row.step, {})
            of_step[row.node.full_name, row.tensor.io, row.tensor.slot or 0] = tuple(row.shape)
    by_content = _by_content(rows, dumped)
    gradients: dict[StepKey, Mapping[_Value, str]] = {}
    subjects: list[str | None] = []
    for row in rows:
        name = row.role.parameter
        if name is not None and name not in data and _is_parameter(name, dumped):
            subjects.append(f"{GRADIENT_OF}{name}" if row.role.is_gradient else name)
            continue
        if row.step not in gradients:
            graph = graphs.of(row.step)
            gradients[row.step] = {} if graph is None else gradients_in(graph, dumped, shapes.get(row.step, {}))
        value = _value_of(row)
        found = None if value is None else gradients[row.step].get(value)
        same = by_content.get((row.step, _content(row))) if row.tensor.io == INPUT else None
        subjects.append(same if found is None else f"{GRADIENT_OF}{found}")
    return subjects


def _by_content(rows: Sequence[TensorStatistics], dumped: Set[str]) -> dict[tuple[StepKey, object], str | None]:
    """Names of dumped parameters by their content; None where several have the same, as biases of zeros have."""
    by_content: dict[tuple[StepKey, object], str | None] = {}
    for row in rows:
        if row.operator is not None and row.operator.is_parameter and row.tensor.op_name in dumped:
            content = row.step, _content(row)
            by_content[content] = None if content in by_content else row.tensor.op_name
    return by_content


def _content(row: TensorStatistics) -> object:
    """Alike for two tensors that hold the same, by all that the dump tells of them."""
    numbers = row.numbers
    return row.md5 or str((numbers.max, numbers.min, numbers.avg, numbers.l2norm)), tuple(row.shape)


def _is_parameter(name: str, dumped: Set[str]) -> bool:
    """Whether an input of a graph has the name of a parameter: others are called after an argument, such as self_1."""
    return name in dumped or ("." in name and _IN_LIST.fullmatch(name) is None)


def _value_of(row: TensorStatistics) -> _Value | None:
    if row.node is None:
        return None
    slot = row.tensor.slot or 0
    if row.tensor.io == OUTPUT:
        return row.node.full_name, slot
    origin = row.node.inputs[slot] if slot < len(row.node.inputs) else None
    return None if origin is None else (origin.name, origin.slot)


def gradients_in(graph: GraphFile, dumped: Set[str], shapes: _Shapes) -> dict[_Value, str]:
    """Values of a graph that are gradients, and the parameter of each.

    An optimizer's state goes the same way, in the same shape. It is told from a gradient by what is written into it:
    values that go on into the parameter.
    """
    goals: dict[_Value, str] = {}
    states: set[_Value] = set()
    for node in reversed(graph.nodes):
        for slot, value in _values_read(node):
            if value[1] is None and _is_parameter(value[0], dumped):
                continue
            goal, is_mixed = _goal(node, slot, dumped, goals, shapes)
            if goal is None:
                continue
            # The operator that is first in the graph is the last one here, and tells best.
            goals[value] = goal
            if is_mixed:
                states |= {value, (node.full_name, _place(node, slot) or 0)}
            elif (node.full_name, _place(node, slot) or 0) in states and slot in _overwritten(node):
                states.add(value)
    raw = _raw(graph)
    return {value: goal for value, goal in goals.items() if value in raw and value not in states}


def _goal(
    node: GraphNode, slot: int, dumped: Set[str], goals: Mapping[_Value, str], shapes: _Shapes
) -> tuple[str | None, bool]:
    """The parameter into which an input of an operator goes; whether the input is memory in which that is gathered."""
    shape = shapes.get((node.full_name, INPUT, slot))
    overwritten = _overwritten(node)
    place = _place(node, slot)
    beside = [other for other in range(len(node.inputs)) if other != slot and _place(node, other) == place]
    for target in () if slot in overwritten or _COPY.fullmatch(node.op_type) else beside:
        origin = node.inputs[target]
        if target in overwritten and origin is not None and origin.slot is None and _is_parameter(origin.name, dumped):
            is_like = shapes.get((node.full_name, INPUT, target), shape) == shape
            return (origin.name if is_like else None), False
    goal = goals.get((node.full_name, place or 0))
    if goal is None or shapes.get((node.full_name, OUTPUT, place or 0), shape) != shape:
        return None, False
    if slot not in overwritten:
        return goal, False
    if _COPY.fullmatch(node.op_type):
        return None, False
    others = [other for other in beside if shapes.get((node.full_name, INPUT, other)) == shape]
    return goal, bool(others) and any(
        (origin := node.inputs[other]) is not None and not (origin.slot is None and _is_parameter(origin.name, dumped))
        for other in others
    )


def _raw(graph: GraphFile) -> set[_Value]:
    """Values that come into a graph, and what only copies, views, scales or reduces them."""
    made = {node.full_name for node in graph.nodes}
    raw: set[_Value] = set()
    for node in graph.nodes:
        read = list(_values_read(node))
        raw |= {value for _, value in read if value[0] not in made}
        if not (_COPY.fullmatch(node.op_type) or _KEEP.fullmatch(node.op_type) or only_moves(node.op_type)):
            continue
        for slot, value in read:
            is_source = slot not in _overwritten(node) or not _COPY.fullmatch(node.op_type)
            if value in raw and is_source:
                raw.add((node.full_name, _place(node, slot) or 0))
    return raw


def _values_read(node: GraphNode) -> Iterator[tuple[int, _Value]]:
    for slot, origin in enumerate(node.inputs):
        if origin is not None and not origin.is_constant:
            yield slot, (origin.name, origin.slot)


def _overwritten(node: GraphNode) -> tuple[int, ...]:
    """Slots of the inputs that an operator writes; of one on lists the whole first list."""
    if _LIST_IN_PLACE.fullmatch(node.op_type) is None:
        return memory_use(node.op_type).overwrites
    lists = [_IN_LIST.fullmatch(name) for name in node.input_names]
    first = next((match["list"] for match in lists if match), None)
    return tuple(slot for slot, match in enumerate(lists) if match and match["list"] == first)


def _place(node: GraphNode, slot: int) -> int | None:
    """Place of an input in its list, to which the result of that place belongs; None for one that is in no list."""
    match = _IN_LIST.fullmatch(node.input_names[slot]) if slot < len(node.input_names) else None
    return None if match is None else int(match["place"])
