"""Gradients of control flow: what ran runs backward, with the values that each of its runs has kept.

The backward of a region is a region that reads values of the forward one. A loop runs its backward as often as it ran,
last run first; gradients of what all runs read are added up in carried values. A backward has a backward itself, which
reads values of both: it runs back through the backward and on through what that reads of the forward region.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from msdump.graph.graph import Graph, Node, Value
from msdump.graph.primitive import Primitive
from msdump.graph.types import TensorType
from msdump.mindspore.program.autodiff import GradBuilder, backward, depending
from msdump.mindspore.program.regions import GRADIENTS, IF, WHILE, add_backward, chain_of, own_inputs, region_input
from msdump.tensors import dtypes

Gradients = Sequence["Value | None"]


def if_gradient(builder: GradBuilder, node: Node, outer: Gradients) -> Gradients:
    """For both regions one that gives the gradients of all inputs that either of them has.

    Of a backward: through what that computed, and what it read of the runs that it runs backward.
    """
    chain = chain_of(node)
    slots = _shared_slots(builder, chain)
    if not slots:
        return [None] * len(node.inputs)
    wrt = [node.inputs[slot] for slot in slots]
    regions = []
    for number, last in enumerate(node.regions):
        region = builder.graph.part()
        pending: dict[int, list[Value]] = {}
        for value, gradient in zip(last.outputs, outer, strict=True):
            if gradient is not None:
                pending.setdefault(value.id, []).append(gradient)
        results = _backward(region, [each.regions[number] for each in chain], pending, wrt, node)
        region.outputs = [_or_zeros(region, gradient, value.type) for gradient, value in zip(results, wrt, strict=True)]
        regions.append(region)
    outputs = add_backward(builder.graph, node, (), tuple(regions), [value.type for value in wrt]).outputs
    gradients: list[Value | None] = [None] * len(node.inputs)
    for slot, value in zip(slots, outputs, strict=True):
        gradients[slot] = value
    return gradients


def while_gradient(builder: GradBuilder, node: Node, outer: Gradients) -> Gradients:
    """Carries gradients: of each carried value that the result depends on, then a sum for each value all runs read.

    Of a backward, a loop over the runs of a loop: what it computes in each run depends on what the loops before it
    carried into that run. The gradients of those need loops of their own, each in the opposite order of runs.
    """
    loops = chain_of(node)
    slots = _shared_slots(builder, loops)
    shared = [node.inputs[slot] for slot in slots]
    carried = _carried(builder, loops, shared)
    gradients: list[Value | None] = [None] * len(node.inputs)
    sums = [_zeros(builder.graph, value.type) for value in shared]
    initial = [_or_zeros(builder.graph, outer[index], node.outputs[index].type) for index in carried[-1]]
    parts: dict[int, list[Value]] = {}
    previous = node
    while initial:
        region = _loop_region(builder, node, loops, carried, shared, parts)
        types = [value.type for value in (*initial, *sums)]
        previous = add_backward(builder.graph, previous, [*initial, *sums], (region,), types)
        first = _first_input(chain_of(node), loops[-1])
        for index, value in zip(carried[-1], previous.outputs, strict=False):
            gradients[first + index] = value
        sums = list(previous.outputs[len(initial) :])
        loops, carried = loops[:-1], carried[:-1]
        has_more = any(value.id in parts for loop in loops for value in loop.regions[-1].inputs)
        initial = [_zeros(builder.graph, loops[-1].outputs[index].type) for index in carried[-1]] if has_more else []
        assert initial or not has_more, "runs of a loop that differ in no gradient have none to hand on"
    for slot, value in zip(slots, sums, strict=True):
        gradients[slot] = value
    return gradients


def _loop_region(
    builder: GradBuilder, node: Node, loops: Sequence[Node], carried: Sequence[Sequence[int]], shared: Sequence[Value],
    parts: dict[int, list[Value]],
) -> Graph:  # fmt: skip
    """What runs for each run of the last loop: takes the gradients of what that carried on, gives those of its inputs.

    parts   id of what a loop carried into a run -> gradients, from what later loops computed in the same run; gets more
    """
    bodies = [loop.regions[-1] for loop in loops]
    region = builder.graph.part()
    before = [region_input(region, bodies[-1].outputs[index].type) for index in carried[-1]]
    sums = [region_input(region, value.type) for value in shared]
    pending: dict[int, list[Value]] = {}
    for index, gradient in zip(carried[-1], before, strict=True):
        pending.setdefault(bodies[-1].outputs[index].id, []).append(gradient)
    starts = [body.inputs[index] for body, indices in zip(bodies, carried, strict=True) for index in indices]
    results = _backward(region, bodies, pending, [*starts, *shared], node)
    for value, result in zip(starts, results, strict=False):
        if result is not None:
            parts.setdefault(value.id, []).append(result)
    adder = GradBuilder(region, node, ())
    for index in carried[-1]:
        value = bodies[-1].inputs[index]
        own = parts.get(value.id, [])
        total = adder.add("AddN", own) if len(own) > 1 else next(iter(own), None)
        region.outputs.append(_or_zeros(region, total, value.type))
    for sum_, result in zip(sums, results[len(starts) :], strict=True):
        region.outputs.append(sum_ if result is None else adder.add("AddN", [sum_, result]))
    return region


def _backward(
    region: Graph, forwards: Sequence[Graph], pending: dict[int, list[Value]], wrt: Sequence[Value], owner: Node
) -> Sequence[Value | None]:
    """Gradients in `region`, back through regions of which each reads what those before it have computed."""
    nodes = [node for forward in forwards for node in forward.nodes]
    results = backward(region, nodes, pending, wrt, owner)
    for forward in forwards:
        _keep_read_values(forward, region)
    return results


def _first_input(chain: Sequence[Node], node: Node | None = None) -> int:
    """Among the inputs of the last of a chain, the first of those of another; without one, of what all regions read."""
    later = chain if node is None else chain[chain.index(node) + 1 :]
    return sum(own_inputs(each) for each in later)


def _shared_slots(builder: GradBuilder, chain: Sequence[Node]) -> list[int]:
    """Inputs of the last of a chain that its regions, or those before it, read and whose gradients are needed."""
    node = chain[-1]
    slots: dict[int, int] = {}
    for slot in range(_first_input(chain), len(node.inputs)):
        if builder.wanted[slot] and _is_float(node.inputs[slot]):
            slots.setdefault(node.inputs[slot].id, slot)
    return list(slots.values())


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


def _carried(builder: GradBuilder, loops: Sequence[Node], shared: Sequence[Value]) -> list[list[int]]:
    """Of each loop the carried floats that depend on something whose gradient is needed, at the start or later."""
    bodies = [loop.regions[-1] for loop in loops]
    nodes = [node for body in bodies for node in body.nodes]
    floats = [
        (number, index)
        for number, body in enumerate(bodies)
        for index in range(len(body.inputs))
        if _is_float(body.inputs[index])
    ]
    firsts = [_first_input(loops, loop) for loop in loops]
    chosen = {(number, index) for number, index in floats if builder.wanted[firsts[number] + index]}
    while True:
        needed = depending(nodes, [*(bodies[number].inputs[index] for number, index in chosen), *shared])
        reached = {(number, index) for number, index in floats if bodies[number].outputs[index].id in needed} | chosen
        if reached == chosen:
            return [sorted(index for of, index in chosen if of == number) for number in range(len(loops))]
        chosen = reached


def _is_float(value: Value) -> bool:
    return dtypes.dtype(value.type.dtype).kind in (dtypes.FLOAT, dtypes.COMPLEX)


def _or_zeros(graph: Graph, gradient: Value | None, type: TensorType) -> Value:
    return _zeros(graph, type) if gradient is None else gradient


def _zeros(graph: Graph, type: TensorType) -> Value:
    return graph.add_constant(np.zeros(type.shape, dtypes.dtype(type.dtype).numpy), type.dtype)


GRADIENTS.update({IF: if_gradient, WHILE: while_gradient})
