"""Gradients of control flow: what ran runs backward, with the values that each of its runs has kept.

The backward of a region is a region that reads values of the forward one. A loop runs its backward as often as it ran,
last run first; gradients of what all runs read are added up in carried values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from msdump import dtypes
from msdump.errors import GraphError
from msdump.graph.autodiff import GradBuilder, backward, depending
from msdump.graph.graph import Graph, Node, Value
from msdump.graph.primitive import Primitive
from msdump.graph.regions import GRADIENTS, IF, WHILE, add_backward, region_input
from msdump.graph.types import TensorType

Gradients = Sequence["Value | None"]


def if_gradient(builder: GradBuilder, node: Node, outer: Gradients) -> Gradients:
    """For both regions one that gives the gradients of all inputs that either of them has."""
    slots = [slot for slot, is_wanted in enumerate(builder.wanted) if slot and is_wanted and _is_float(node, slot)]
    if not slots:
        return [None] * len(node.inputs)
    regions = []
    for forward in node.regions:
        region = builder.graph.part()
        pending: dict[int, list[Value]] = {}
        for value, gradient in zip(forward.outputs, outer, strict=True):
            if gradient is not None:
                pending.setdefault(value.id, []).append(gradient)
        wrt = [node.inputs[slot] for slot in slots]
        results = backward(region, forward.nodes, pending, wrt, node)
        _keep_read_values(forward, region)
        region.outputs = [_or_zeros(region, gradient, value.type) for gradient, value in zip(results, wrt, strict=True)]
        regions.append(region)
    types = [node.inputs[slot].type for slot in slots]
    gradients: list[Value | None] = [None] * len(node.inputs)
    outputs = add_backward(builder.graph, node, (), tuple(regions), types).outputs
    for slot, value in zip(slots, outputs, strict=True):
        gradients[slot] = value
    return gradients


def while_gradient(builder: GradBuilder, node: Node, outer: Gradients) -> Gradients:
    """Carries gradients: of each carried value that the result depends on, then a sum for each value all runs read."""
    body = node.regions[1]
    count = len(body.inputs)
    shared = [slot for slot in range(count, len(node.inputs)) if builder.wanted[slot] and _is_float(node, slot)]
    carried = _carried(node, body, [node.inputs[slot] for slot in shared], builder.wanted)
    slots = [*carried, *shared]
    if not slots:
        return [None] * len(node.inputs)
    types = [node.inputs[slot].type for slot in slots]
    region = builder.graph.part()
    before = [region_input(region, type) for type in types]
    pending: dict[int, list[Value]] = {}
    for index, gradient in zip(carried, before, strict=False):
        pending.setdefault(body.outputs[index].id, []).append(gradient)
    wrt = [*(body.inputs[index] for index in carried), *(node.inputs[slot] for slot in shared)]
    results = backward(region, body.nodes, pending, wrt, node)
    _keep_read_values(body, region)
    inner = GradBuilder(region, node, ())
    outputs = []
    for position, (result, sum_) in enumerate(zip(results, before, strict=True)):
        if position < len(carried):
            outputs.append(_or_zeros(region, result, sum_.type))
        else:
            outputs.append(sum_ if result is None else inner.add("AddN", [sum_, result]))
    region.outputs = outputs
    initial = [_or_zeros(builder.graph, outer[index], node.inputs[index].type) for index in carried]
    initial += [_zeros(builder.graph, node.inputs[slot].type) for slot in shared]
    gradients: list[Value | None] = [None] * len(node.inputs)
    for slot, value in zip(slots, add_backward(builder.graph, node, initial, (region,), types).outputs, strict=True):
        gradients[slot] = value
    return gradients


def _keep_read_values(forward: Graph, region: Graph) -> None:
    """Let gradients read a parameter that the program writes as their forward operator read it, in its own run.

    Source: MindSpore moves such a value to memory of its own: TensorMove.
    """
    place = {node.id: node for node in forward.nodes}
    moved: dict[tuple[int, int], Value] = {}
    for node in region.nodes:
        reader = place.get(node.forward.id) if node.forward is not None and not node.regions else None
        if reader is None:
            continue
        inputs = list(node.inputs)
        for slot, value in enumerate(inputs):
            if value.parameter is not None and value.id in forward.written and slot not in node.definition.mutates:
                if (value.id, reader.id) not in moved:
                    copy = forward.add_node(Primitive("TensorMove"), [value], reader.scope, reader.source)
                    forward.nodes.insert(forward.nodes.index(reader), forward.nodes.pop())
                    moved[value.id, reader.id] = copy.outputs[0]
                inputs[slot] = moved[value.id, reader.id]
        node.inputs = tuple(inputs)


def _carried(node: Node, body: Graph, shared: Sequence[Value], wanted: Sequence[bool]) -> list[int]:
    """Carried values of floats that depend on something whose gradient is needed, at the start or after some runs."""
    floats = [index for index in range(len(body.inputs)) if _is_float(node, index)]
    chosen = {index for index in floats if wanted[index]}
    while True:
        needed = depending(body.nodes, [*(body.inputs[index] for index in chosen), *shared])
        reached = {index for index in floats if body.outputs[index].id in needed} | chosen
        if reached == chosen:
            return sorted(chosen)
        chosen = reached


def _is_float(node: Node, slot: int) -> bool:
    return dtypes.dtype(node.inputs[slot].type.dtype).kind in (dtypes.FLOAT, dtypes.COMPLEX)


def _or_zeros(graph: Graph, gradient: Value | None, type: TensorType) -> Value:
    return _zeros(graph, type) if gradient is None else gradient


def _zeros(graph: Graph, type: TensorType) -> Value:
    return graph.add_constant(np.zeros(type.shape, dtypes.dtype(type.dtype).numpy), type.dtype)


def no_gradient(builder: GradBuilder, node: Node, outer: Gradients) -> Gradients:
    """Raises: GraphError: what the runs have kept is not there for a second backward."""
    where = node.source[-1] if node.source else node.where
    raise GraphError(
        f"{where}: expected one gradient of control flow on a tensor's value, got the gradient of its gradient. "
        "Use ops.select or ops.where there, or run with set_context(mode=PYNATIVE_MODE)."
    )


GRADIENTS.update({IF: if_gradient, WHILE: while_gradient, f"{IF}Grad": no_gradient, f"{WHILE}Grad": no_gradient})
