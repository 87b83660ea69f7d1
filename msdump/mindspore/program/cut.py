"""From a program with control flow to graphs without: it is cut wherever a node decides what runs next.

Source: real dumps of MindSpore 2.0. The graph before an `if` comes first, then the one after it, then its branches; of
a `while` the condition, then the body, then what comes after it. Operators are numbered through all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from msdump.graph.graph import CONSTANT, INPUT, PARAMETER, SAVED, Graph, Node, Value
from msdump.mindspore.program.regions import WHILE


@dataclass(eq=False)
class Piece:
    """Operators that run one after the other: a graph that observers know and that runs in one go.

    inputs   values of the program that become the inputs of the graph
    outputs  values of the program that its outputs are
    """

    graph: Graph
    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Decision:
    """A node that decides what runs, and the parts of the program that it runs.

    has_backward   its backward is in the program, so that what its runs computed is kept
    """

    node: Node
    parts: tuple[Part, ...]
    has_backward: bool


@dataclass(frozen=True, eq=False)
class Part:
    """The program, or one of its regions, in the order in which it runs."""

    region: Graph
    steps: tuple[Piece | Decision, ...]

    def pieces(self) -> Iterator[Piece]:
        """Its pieces and those of the parts in it, in the order of their numbers."""
        yield from _pieces(self.steps)


def cut(program: Graph) -> Part:
    """The pieces of a program with control flow, in the order in which they run.

    The nodes of the program become those of the pieces: it is of no use afterwards. The first piece is the entry: it
    has the inputs of the program, and comes first also where it has no operator.
    """
    read_later = _read_between(program)
    differentiated = {node.forward.id for node in _all_nodes(program) if node.regions and node.forward is not None}
    entry = Piece(program.part())
    part = _part(program, read_later, differentiated, entry)
    entry.graph.is_entry = True
    entry.graph.is_dynamic = program.is_dynamic
    entry.graph.inputs = list(program.inputs)
    entry.inputs = list(program.inputs)
    op_id = 0
    for piece in part.pieces():
        _connect(piece, program)
        piece.graph.number(op_id)
        op_id += len(piece.graph.nodes)
    return part


def _part(region: Graph, read_later: set[int], differentiated: set[int], entry: Piece | None = None) -> Part:
    steps: list[Piece | Decision] = [] if entry is None else [entry]
    maker: dict[int, Piece] = {}
    piece = entry
    for node in region.nodes:
        if node.regions:
            parts = tuple(_part(inner, read_later, differentiated) for inner in node.regions)
            steps.append(Decision(node, parts, node.id in differentiated))
            piece = None
        elif piece is None:
            piece = Piece(region.part())
            steps.append(piece)
        # What another piece has made is handed over.
        read_later.update(value.id for value in node.inputs if maker.get(value.id, piece) is not piece)
        if piece is not None:
            piece.graph.nodes.append(node)
            maker.update((value.id, piece) for value in node.outputs)
    for step in steps:
        if isinstance(step, Piece):
            made = [value for node in step.graph.nodes for value in node.outputs]
            step.outputs = [value for value in made if value.id in read_later]
    return Part(region, tuple(steps))


def _all_nodes(region: Graph) -> Iterator[Node]:
    for node in region.nodes:
        yield node
        for inner in node.regions:
            yield from _all_nodes(inner)


def _read_between(region: Graph) -> set[int]:
    """Ids of values that are read outside of the region that makes them, or are results of it."""
    read: set[int] = {value.id for value in region.outputs}
    for node in region.nodes:
        for inner in node.regions:
            made = {value.id for each in inner.nodes for value in each.outputs}
            read.update(value.id for each in inner.nodes for value in each.inputs if value.id not in made)
            read.update(_read_between(inner))
    return read


def _pieces(steps: tuple[Piece | Decision, ...]) -> Iterator[Piece]:
    for index, step in enumerate(steps):
        if isinstance(step, Piece):
            yield step
            continue
        inner = (piece for part in step.parts for piece in part.pieces())
        rest = _pieces(steps[index + 1 :])
        yield from (inner if step.node.op_type.startswith(WHILE) else rest)
        yield from (rest if step.node.op_type.startswith(WHILE) else inner)
        return


def _connect(piece: Piece, program: Graph) -> None:
    """Give a piece inputs for what others make, and its parameters, constants and outputs."""
    graph = piece.graph
    made = {value.id for node in graph.nodes for value in node.outputs}
    shown: dict[int, Value] = {value.id: value for value in graph.inputs}
    parameters: dict[int, Value] = {}
    constants: dict[int, Value] = {}
    for node in graph.nodes:
        for value in node.inputs:
            if value.kind == CONSTANT:
                constants[value.id] = value
            elif value.kind == PARAMETER:
                parameters[value.id] = value
            elif value.id not in made and value.id not in shown:
                name = value.name if value.kind in (INPUT, SAVED) and value.name else f"value{value.id}"
                shown[value.id] = replace(value, kind=SAVED, name=name, node=None, index=0)
                piece.inputs.append(value)
        node.inputs = tuple(shown.get(value.id, value) for value in node.inputs)
    graph.inputs = list(shown.values())
    graph.parameters = list(parameters.values())
    graph.constants = list(constants.values())
    graph.outputs = piece.outputs
    used = {value.id for value in (*graph.inputs, *graph.parameters)}
    order = [shown.get(value.id, value) for value in program.parameter_order if value.id in used]
    graph.parameter_order = list({value.id: value for value in (*order, *graph.parameters, *graph.inputs)}.values())
