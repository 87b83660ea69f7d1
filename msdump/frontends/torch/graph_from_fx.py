"""An FX graph of ATen operators -> Graph, for one set of shapes.

One node per call that reads or makes a tensor. Arithmetic on shapes and the items of tuples are no operators; tensors
that no array can show are left out of the operands and counted.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from msdump.frontends.torch.convert import Sizes, array_of, type_of, why_unreadable
from msdump.frontends.torch.operators import (
    Argument,
    Path,
    arguments,
    is_transparent,
    primitive_of,
    result_aliases,
    results_in,
)
from msdump.frontends.torch.places import BACKWARD_ROOT, ROOT, scope_of, source_lines
from msdump.graph.graph import INPUT, SAVED, Graph, Node, Value
from msdump.process.report import Skipped

FORWARD, BACKWARD, INFERENCE = "forward", "backward", "inference"


@dataclass(frozen=True)
class CaptureInfo:
    """Facts about an FX graph from its caller.

    stage        "forward", "backward" or "inference"
    inputs       name -> (name to show, kind) of each placeholder
    open_outputs how many of the first outputs go to the user, who may write them later
    shared       names of placeholders whose memory may be written later
    forward      nodes of the forward graph by FX `seq_nr`, for a backward graph
    gradients    name and shape of the input of the model whose gradient each output of a backward graph is
    """

    stage: str
    inputs: Mapping[str, tuple[str, str]]
    open_outputs: int
    shared: frozenset[str] = frozenset()
    forward: Mapping[int, Node] = field(default_factory=dict)
    gradients: Sequence[tuple[str, tuple[int, ...]] | None] = ()


@dataclass(eq=False)
class FxGraph:
    """A Graph and what leads back to FX.

    nodes    the node of each FX call that is an operator
    operands  the FX nodes and values that such a call reads, one per input slot
    values   the value of each tensor that can be shown: (FX node, path in its result)
    roots    value id -> value id of the memory it lies in
    skipped  why tensors are not shown -> how many
    by_seq_nr  first operator of each `seq_nr`
    by_name  all FX nodes
    opaque   ids of values whose memory is not known
    """

    graph: Graph
    nodes: dict[fx.Node, Node] = field(default_factory=dict)
    operands: dict[fx.Node, list[tuple[fx.Node, Value]]] = field(default_factory=dict)
    values: dict[tuple[fx.Node, Path], Value] = field(default_factory=dict)
    roots: dict[int, int] = field(default_factory=dict)
    skipped: Skipped = field(default_factory=Skipped)
    by_seq_nr: dict[int, Node] = field(default_factory=dict)
    by_name: dict[str, fx.Node] = field(default_factory=dict)
    opaque: set[int] = field(default_factory=set)

    def value_of(self, node: fx.Node) -> Value | None:
        return self.values.get(producer_of(node))


def producer_of(node: fx.Node) -> tuple[fx.Node, Path]:
    """The call that made a tensor and the path in its result, through the items of tuples."""
    path: Path = ()
    while node.op == "call_function" and node.target is operator.getitem and isinstance(node.args[0], fx.Node):
        path = (int(node.args[1]), *path)  # type: ignore[arg-type]
        node = node.args[0]
    return node, path


def graph_from_fx(module: fx.GraphModule, sizes: Sizes, graph_id: int, origin: CaptureInfo) -> FxGraph:
    """The Graph of an FX graph, numbered and checked."""
    result = FxGraph(Graph(f"kernel_graph_{graph_id}", graph_id))
    open_roots: set[int] = set()
    for node in module.graph.nodes:
        result.by_name[node.name] = node
        if node.op == "placeholder":
            _add_placeholder(result, node, sizes, origin, open_roots)
        elif node.op == "get_attr":
            _add_constant(result, node, module)
        elif node.op == "output":
            _add_outputs(result, node, origin, open_roots)
        elif node.op == "call_function" and node.target is not operator.getitem:
            _add_call(result, node, sizes, origin)
    settle(result, open_roots)
    return result


def settle(result: FxGraph, open_roots: set[int]) -> None:
    """Number and check a graph whose nodes are all there, and find out whose memory stays as it is.

    open_roots   ids of values whose memory may be written when the run has ended
    """
    written = result.opaque | {result.roots[value.id] for node in result.graph.nodes for value in _written(node)}
    for value in (*result.graph.inputs, *result.graph.parameters, *_results(result.graph)):
        root = result.roots[value.id]
        if root not in written:
            (result.graph.borrowed if root in open_roots else result.graph.held).add(value.id)
    result.graph.number()
    result.graph.lint()


def _add_placeholder(result: FxGraph, node: fx.Node, sizes: Sizes, origin: CaptureInfo, open_roots: set[int]) -> None:
    tensor = node.meta.get("val")
    if not isinstance(tensor, torch.Tensor):
        return
    reason = why_unreadable(tensor)
    if reason:
        result.skipped.add(reason, node.name)
        return
    name, kind = origin.inputs.get(node.name, (node.name, INPUT))
    value = result.graph.add_input(name, type_of(tensor, sizes), kind)
    result.values[node, ()] = value
    result.roots[value.id] = value.id
    if kind != SAVED or node.name in origin.shared:
        open_roots.add(value.id)


def _add_constant(result: FxGraph, node: fx.Node, module: fx.GraphModule) -> None:
    tensor: Any = module
    for name in str(node.target).split("."):
        tensor = getattr(tensor, name)
    if not isinstance(tensor, torch.Tensor):
        return
    reason = why_unreadable(tensor)
    if reason:
        result.skipped.add(reason, str(node.target))
        return
    array = array_of(tensor.cpu())
    value = result.graph.add_constant(array, type_of(tensor, {}).dtype, node.name)
    result.values[node, ()] = value
    result.roots[value.id] = value.id


def _add_outputs(result: FxGraph, node: fx.Node, origin: CaptureInfo, open_roots: set[int]) -> None:
    outputs: Any = node.args[0]
    for index, item in enumerate(outputs if isinstance(outputs, tuple | list) else [outputs]):
        value = result.value_of(item) if isinstance(item, fx.Node) else None
        if value is not None:
            result.graph.outputs.append(value)
            gradient = origin.gradients[index] if index < len(origin.gradients) else None
            if gradient is not None and gradient[1] == value.type.shape:
                result.graph.gradient_of.setdefault(value.id, gradient[0])
            if index < origin.open_outputs:
                open_roots.add(result.roots[value.id])


def _add_call(result: FxGraph, node: fx.Node, sizes: Sizes, origin: CaptureInfo) -> None:
    tensors = [(argument, result.value_of(argument.node)) for argument in arguments(node)]
    shown = [(argument, value) for argument, value in tensors if value is not None]
    if "val" not in node.meta:
        # PyTorch adds operators that draw a recomputed part's random numbers again without saying what they return.
        result.skipped.add(f"results of {node.target}, of unknown shape", node.name)
    results = list(results_in(node.meta.get("val")))
    readable = [(path, tensor) for path, tensor in results if not _count_unreadable(result, tensor, node)]
    if not shown and not results:
        return
    sources = _sources(node, [argument for argument, _ in shown], [path for path, _ in readable])
    written = {output: slot for output, slot in sources.items() if shown[slot][0].is_written}
    primitive = primitive_of(node, [argument for argument, _ in shown], written, sources)
    scope = scope_of(node)
    forward = origin.forward.get(node.meta.get("seq_nr", -1)) if origin.stage == BACKWARD else None
    if origin.stage == BACKWARD:
        scope = BACKWARD_ROOT + scope.removeprefix(ROOT)
    call = result.graph.add_foreign_node(
        primitive,
        [value for _, value in shown],
        [type_of(tensor, sizes) for _, tensor in readable],
        scope,
        source_lines(node),
        forward,
        "backward" if origin.stage == BACKWARD else "forward",
    )
    result.nodes[node] = call
    result.operands[node] = [(argument.node, value) for argument, value in shown]
    result.by_seq_nr.setdefault(node.meta.get("seq_nr", -1), call)
    for slot, ((path, _), value) in enumerate(zip(readable, call.outputs, strict=True)):
        value.name = node.name if not path else f"{node.name}_{'_'.join(map(str, path))}"
        result.values[node, path] = value
        source = sources.get(slot)
        result.roots[value.id] = value.id if source is None else result.roots[shown[source][1].id]
        if not is_transparent(node.target):
            result.opaque.add(value.id)


def _count_unreadable(result: FxGraph, tensor: torch.Tensor, node: fx.Node) -> bool:
    reason = why_unreadable(tensor)
    if reason:
        result.skipped.add(reason, f"{node.name}, a result of {node.target}")
    return bool(reason)


def _sources(node: fx.Node, tensors: Sequence[Argument], paths: Sequence[Path]) -> dict[int, int]:
    """Output slot -> input slot whose memory it shows."""
    letters = result_aliases(node)
    sources: dict[int, int] = {}
    for slot, path in enumerate(paths):
        # The schema counts results; a list is one result, and so is a tensor that comes alone.
        index = path[0] if path and len(letters) > 1 else 0
        own = letters[index] if index < len(letters) else frozenset()
        source = next((position for position, argument in enumerate(tensors) if own & argument.aliases), None)
        if source is None and _hands_on_silently(node) and tensors:
            source = 0
        if source is not None:
            sources[slot] = source
    return sources


def _hands_on_silently(node: fx.Node) -> bool:
    """Operators that return their operand's memory although the schema does not say so."""
    return str(node.target) in ("aten._unsafe_view.default", "_c10d_functional.wait_tensor.default")


def _results(graph: Graph) -> Iterator[Value]:
    return (value for node in graph.nodes for value in node.outputs)


def _written(node: Node) -> list[Value]:
    return [node.inputs[slot] for slot in node.definition.mutates]
