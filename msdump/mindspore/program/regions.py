"""Control flow in a program: nodes that decide what runs, and the parts of the program that they run, their regions.

A region is a graph of its own in which operators may read any value of the graphs around it. `If` runs one of its two
regions; `While` runs its second one as long as its first gives true. `finish` cuts such a program into graphs without
control flow (`graph/cut.py`), so that nothing that shows or runs a graph need know of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from msdump.errors import GraphError
from msdump.graph.graph import CONSTANT, PARAMETER, SAVED, Graph, Node, Value
from msdump.graph.primitive import Primitive, PrimitiveDef
from msdump.graph.types import SourceLine, TensorType
from msdump.mindspore.program.autodiff import Bprop

IF, WHILE = "If", "While"
# Attribute of a While: the carried value that ends the loop before its condition is asked again; -1 without one.
STOP = "stop"
# Gradient rules, which `graph/region_gradients.py` brings.
GRADIENTS: dict[str, Bprop] = {}


def add_if(
    graph: Graph, condition: Value, then: Graph, orelse: Graph, scope: str, source: Sequence[SourceLine], stage: str
) -> Node:
    """Append a node that runs `then` where the condition's only element is not 0, else `orelse`.

    Its outputs are those of the region that ran. Inputs: the condition, then what the regions read of their
    surroundings.
    Raises: GraphError when the regions give different types.
    """
    if [value.type for value in then.outputs] != [value.type for value in orelse.outputs]:
        raise GraphError(f"{IF}: expected both branches to give tensors of the same types.")
    regions = (then, orelse)
    inputs = [condition, *_read_outside(regions)]
    return _add(graph, IF, inputs, [value.type for value in then.outputs], regions, scope, source, stage)


def add_while(
    graph: Graph, condition: Graph, body: Graph, initial: Sequence[Value], stop: int, scope: str,
    source: Sequence[SourceLine], stage: str,
) -> Node:  # fmt: skip
    """Append a loop over carried values: each run of `condition` and `body` gets them as the inputs of the region.

    stop   index of a carried value that is not 0 once the body has left the loop, -1 without one
    Its outputs are the carried values in the end. Inputs: the carried values at the start, then what the regions read
    of their surroundings.
    Raises: GraphError when a carried value changes its type.
    """
    types = [value.type for value in initial]
    for values in (condition.inputs, body.inputs, body.outputs):
        if [value.type for value in values] != types:
            raise GraphError(f"{WHILE}: expected carried values to keep their types.")
    regions = (condition, body)
    inputs = [*initial, *_read_outside(regions)]
    return _add(graph, WHILE, inputs, types, regions, scope, source, stage, {STOP: stop})


def add_backward(
    graph: Graph, forward: Node, inputs: Sequence[Value], regions: tuple[Graph, ...], types: Sequence[TensorType]
) -> Node:
    """Append the backward of a node that decides: it runs backward what `forward` ran, as often as that did.

    forward   may be a backward itself: its runs run backward again
    regions   of an If: for each of its regions one that gives the gradients; of a While: one for its body
    inputs    of a While: the carried gradients at the start
    """
    outside = _read_outside(regions, chain_of(forward))
    # An output of the forward node makes it run first; what that read, its backward depends on as well.
    reads = [*inputs, *forward.outputs[:1], *forward.inputs, *outside]
    scope = f"Gradients/{forward.scope}"
    node = _add(graph, f"{forward.op_type}Grad", reads, types, regions, scope, forward.source, "backward")
    node.forward = forward
    return node


def chain_of(node: Node) -> list[Node]:
    """An If or a While, its backward, the backward of that and so on up to a node that decides."""
    chain = [node]
    while chain[0].forward is not None and chain[0].op_type not in (IF, WHILE):
        chain.insert(0, chain[0].forward)
    return chain


def own_inputs(node: Node) -> int:
    """How many inputs of a node that decides are not what its regions read: carried values, and what makes it wait."""
    return len(node.regions[-1].inputs) + (node.op_type != WHILE)


def _add(
    graph: Graph, op_type: str, inputs: Sequence[Value], types: Sequence[TensorType], regions: tuple[Graph, ...],
    scope: str, source: Sequence[SourceLine], stage: str, attrs: dict[str, int] | None = None,
) -> Node:  # fmt: skip
    primitive = Primitive(op_type, attrs or {}, definition=_definition(op_type, inputs, regions))
    node = graph.add_foreign_node(primitive, inputs, types, scope, source, stage=stage)
    node.regions = regions
    return node


def _definition(op_type: str, inputs: Sequence[Value], regions: Sequence[Graph]) -> PrimitiveDef:
    mutated = {value.id for region in regions for value in mutated_values(region)}
    return PrimitiveDef(
        op_type,
        mutates=tuple(slot for slot, value in enumerate(inputs) if value.id in mutated),
        is_kernel=False,
        has_side_effect=any(node.definition.has_side_effect for region in regions for node in region.nodes),
        bprop=GRADIENTS.get(WHILE if op_type.startswith(WHILE) else IF),
    )


def drop_unread(node: Node, read: Collection[int]) -> None:
    """Let a node that decides forget outputs that nobody reads, and inputs that its regions do not read any more.

    read   ids of values
    """
    if not node.op_type.startswith(WHILE):
        kept = [index for index, value in enumerate(node.outputs) if value.id in read]
        node.outputs = tuple(node.outputs[index] for index in kept)
        for index, value in enumerate(node.outputs):
            value.index = index
        for region in node.regions:
            region.outputs = [region.outputs[index] for index in kept]
    node.inputs = (*node.inputs[: own_inputs(node)], *_read_outside(node.regions, chain_of(node)[:-1]))
    node.primitive = replace(node.primitive, definition=_definition(node.op_type, node.inputs, node.regions))


def _read_outside(regions: Sequence[Graph], forward: Sequence[Node] = ()) -> list[Value]:
    """Values that regions read and do not make, each once; constants belong to all graphs of a program.

    forward   nodes whose backward the regions are: what those made, each run keeps for the backward
    """
    read: dict[int, Value] = {}
    for place, region in enumerate(regions, -len(regions)):
        own = set(_made(region)).union(*(_made(node.regions[place]) for node in forward))
        for value in (*(value for node in region.nodes for value in node.inputs), *region.outputs):
            if value.id not in own and value.kind != CONSTANT:
                read.setdefault(value.id, value)
    return list(read.values())


def _made(region: Graph) -> Iterator[int]:
    yield from (value.id for value in region.inputs)
    yield from (value.id for node in region.nodes for value in node.outputs)


def mutated_values(region: Graph) -> list[Value]:
    """Parameters that a region writes, with those that the regions in it write."""
    root: dict[int, Value] = {}
    mutated: dict[int, Value] = {}
    for node in region.nodes:
        definition = node.definition
        for slot in definition.mutates:
            value = root.get(node.inputs[slot].id, node.inputs[slot])
            if value.kind == PARAMETER:
                mutated[value.id] = value
        for value in node.outputs:
            source = definition.aliases.get(value.index, definition.views.get(value.index))
            if source is not None:
                root[value.id] = root.get(node.inputs[source].id, node.inputs[source])
    return list(mutated.values())


def has_regions(nodes: Iterable[Node]) -> bool:
    """Does one of these nodes decide what runs?"""
    return any(node.regions for node in nodes)


def region_input(region: Graph, type: TensorType, name: str = "") -> Value:
    """A value that each run of a region gets anew."""
    return region.add_input(name, type, SAVED)
