"""Reverse-mode differentiation: adds the backward nodes, with MindSpore's op types and scope names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from msdump.errors import GraphError
from msdump.graph.graph import CONSTANT, Graph, Node, Value
from msdump.graph.primitive import Primitive, definition_of
from msdump.graph.types import TensorType
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array


class GradBuilder:
    """What a bprop may do: add nodes and constants to the graph.

    Nodes get the scope `Gradients/{forward scope}/{grad scope of the primitive}`, the forward node's source
    lines, and stage "backward".

    shared  (operator, operands) -> what it gave: a backward pass computes nothing twice, as in MindSpore
    """

    def __init__(
        self, graph: Graph, forward: Node, wanted: Sequence[bool], shared: dict[Any, tuple[Value, ...]] | None = None
    ) -> None:
        self.graph = graph
        self._shared = {} if shared is None else shared
        self.forward = forward
        self.wanted = tuple(wanted)
        """Per input of the forward node: does anybody need its gradient?"""
        self._scope = f"Gradients/{forward.scope}/{forward.definition.grad_scope}".rstrip("/")

    def add(self, op_type: str, inputs: Sequence[Value], attrs: Mapping[str, Any] | None = None) -> Value:
        """One new node with one output."""
        return self.add_all(op_type, inputs, attrs)[0]

    def add_all(
        self, op_type: str, inputs: Sequence[Value], attrs: Mapping[str, Any] | None = None
    ) -> tuple[Value, ...]:
        """One node, new or the equal one of this backward pass; all its outputs.

        Edges: operators that write, and those that read a parameter, which may change between, are always new.
        """
        forward, primitive = self.forward, Primitive(op_type, dict(attrs or {}))
        definition = definition_of(op_type)
        is_fixed = not (definition.mutates or definition.has_side_effect)
        is_fixed &= all(value.parameter is None for value in inputs)
        key = (op_type, tuple(value.id for value in inputs), repr(sorted(primitive.attrs.items())))
        if is_fixed and key in self._shared:
            return self._shared[key]
        node = self.graph.add_node(primitive, inputs, self._scope, forward.source, forward, "backward")
        self._shared[key] = node.outputs
        return node.outputs

    def constant(self, array: Any, dtype: str) -> Value:
        """A constant; equal constants of one graph are shared."""
        data = np.asarray(array, dtypes.dtype(dtype).numpy)
        for known in self.graph.constants:
            if known.type == TensorType(dtype, data.shape) and _same_bytes(known.constant, data):
                return known
        return self.graph.add_constant(data, dtype)

    def scale(self, value: Value, by: Value) -> Value:
        """`value * by`, without a node when `by` is the constant one of the loss's own gradient."""
        if is_one(by):
            return value
        return self.add("Mul", [value, by])

    def reduce_to(self, value: Value, shape: tuple[int, ...]) -> Value:
        """Undo broadcasting: sum `value` over the axes along which an operand of `shape` was repeated."""
        have = value.type.shape
        if have == shape:
            return value
        lead = len(have) - len(shape)
        axes = tuple(range(lead)) + tuple(
            lead + axis for axis, size in enumerate(shape) if size == 1 and have[lead + axis] != 1
        )
        if axes:
            value = self.add("ReduceSum", [value], {"axis": axes, "keep_dims": not lead})
        if value.type.shape != shape:
            value = self.add("Reshape", [value], {"shape": shape})
        return value


# Gradients of the outputs or of the inputs of an operator; None where there is none.
Grads = Sequence[Value | None]
Bprop = Callable[[GradBuilder, Node, Grads], Grads]


def def_bprop(op_type: str) -> Callable[[Bprop], Bprop]:
    """Decorator: `bprop(builder, node, output gradients) -> input gradients`, None for "no gradient"."""

    def register(bprop: Bprop) -> Bprop:
        definition_of(op_type).bprop = bprop
        return bprop

    return register


def outer_gradient(outer: Grads) -> Value:
    """The gradient of the first output."""
    gradient = outer[0]
    assert gradient is not None, "a bprop runs only when its output has a gradient"
    return gradient


def no_gradient(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    """A bprop: no input gets a gradient."""
    return [None] * len(node.inputs)


def one_operator(
    op_type: str,
    operands: Callable[[Value, Value, Value], Sequence[Value]] = lambda x, y, dy: (dy,),
    attrs: Callable[[Node], Mapping[str, Any]] = lambda node: {},
) -> Bprop:
    """A bprop of an operator with one result: one operator on operands(x, y, dy) gives the gradient of the first x."""

    def bprop(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
        given = operands(node.inputs[0], node.outputs[0], outer_gradient(outer))
        return [builder.add(op_type, given, dict(attrs(node))), *[None] * (len(node.inputs) - 1)]

    return bprop


def same_attributes(node: Node) -> Mapping[str, Any]:
    """The attributes of the operator itself, for `one_operator`."""
    return node.primitive.attrs


def is_one(value: Value) -> bool:
    """True for a constant whose elements are all 1."""
    return value.kind == CONSTANT and value.constant is not None and bool(np.all(value.constant == 1))


def _same_bytes(known: Array | None, data: Array) -> bool:
    return known is not None and known.tobytes() == data.tobytes()


Changes = Callable[[Value, Value, Node | None], Value]


def gradients(graph: Graph, loss: Value, wrt: Sequence[Value], sens: Value | None = None) -> list[Value | None]:
    """Gradients of `loss` with respect to each value of `wrt`, as new nodes of `graph`.

    Shapes:  gradient i has the shape of wrt[i]; `sens` (the gradient of the loss itself) that of the loss.
    Dtypes:  those of the values.
    Edges:   None for a value that the loss does not depend on; several uses of a value meet in one AddN;
             without `sens` the loss's gradient is the constant 1, which costs no node.
    Raises:  GraphError for an operator on the way that cannot be differentiated, with its source line.
    """
    return gradients_of_sum(graph, [(loss, sens)], wrt)


def gradients_of_sum(
    graph: Graph, losses: Sequence[tuple[Value, Value | None]], wrt: Sequence[Value], changes: Changes | None = None
) -> list[Value | None]:
    """As `gradients`, for the sum of all elements of several losses, each with its `sens`; `changes` as `backward`."""
    needed = depending(graph.nodes, wrt)
    pending: dict[int, list[Value]] = {}
    for loss, sens in losses:
        if loss.id in needed:
            pending.setdefault(loss.id, []).append(sens or _ones(graph, loss.type))
    return backward(graph, list(graph.nodes), pending, wrt, changes=changes)


def backward(
    graph: Graph, nodes: Sequence[Node], pending: dict[int, list[Value]], wrt: Sequence[Value],
    owner: Node | None = None, changes: Changes | None = None,
) -> list[Value | None]:  # fmt: skip
    """Gradients with respect to each value of `wrt`, as new nodes of `graph`, back through `nodes`.

    pending  value id -> gradients that it has already; gets those of all values on the way
    owner    the node to which sums belong that belong to no other
    changes  `changes(value, gradient, node)` gives the gradient of a value, all its uses added up, that goes on from
             there; `node` makes the value, or else gave it its last gradient
    Raises:  as `gradients`.
    """
    needed = depending(nodes, wrt)
    # Value id -> the last operator that gave it a gradient.
    givers: dict[int, Node] = {}
    shared: dict[Any, tuple[Value, ...]] = {}
    for node in reversed(nodes):
        if not any(value.id in pending for value in node.outputs):
            continue
        wanted = [value.id in needed for value in node.inputs]
        if not any(wanted):
            continue
        builder = GradBuilder(graph, node, wanted, shared)
        outer = [_total(builder, pending.pop(value.id, [])) for value in node.outputs]
        if changes is not None:
            outer = [
                gradient and changes(value, gradient, node) for value, gradient in zip(node.outputs, outer, strict=True)
            ]
        bprop = node.definition.bprop
        if bprop is None and not any(dtypes.dtype(value.type.dtype).is_float for value in node.outputs):
            continue
        if bprop is None:
            raise GraphError(f"{node.where}: {node.op_type} has no gradient rule (bprop).")
        inner = bprop(builder, node, outer)
        for value, gradient, want in zip(node.inputs, inner, wanted, strict=True):
            if gradient is None or not want:
                continue
            if gradient.type != value.type:
                raise GraphError(f"{node.where}: expected a gradient {value.type}, got {gradient.type}.")
            pending.setdefault(value.id, []).append(gradient)
            givers[value.id] = node
    results: list[Value | None] = []
    changed: set[int] = set()
    for value in wrt:
        parts = pending.get(value.id, [])
        if len(parts) > 1:
            forward = (parts[-1].node.forward if parts[-1].node else None) or givers.get(value.id) or owner
            if forward is None:
                # The value is itself a loss, more than once.
                node = graph.add_node(Primitive("AddN"), parts, "Gradients/Default", stage="backward")
                parts = list(node.outputs)
            else:
                parts = [_added(GradBuilder(graph, forward, (), shared), parts)]
            pending[value.id] = parts
        if parts and changes is not None and value.id not in changed:
            parts = pending[value.id] = [changes(value, parts[0], givers.get(value.id))]
            changed.add(value.id)
        results.append(parts[0] if parts else None)
    return results


def keep_read_values(graph: Graph, first: int) -> None:
    """Let gradients read a parameter as its forward operator read it, though the program writes it later.

    first   index of the first backward node
    Source: MindSpore moves such a value to memory of its own: TensorMove.
    """
    place = {node.id: index for index, node in enumerate(graph.nodes[:first])}
    writers = [node for node in graph.nodes[:first] if node.definition.mutates]
    moved: dict[tuple[int, int], Value] = {}
    for node in graph.nodes[first:] if writers else ():
        for slot, value in enumerate(node.inputs):
            if value.parameter is None or node.forward is None or node.regions or slot in node.definition.mutates:
                continue
            read_at = place.get(node.forward.id, first)
            writer = next((each for each in writers if place[each.id] > read_at and _writes(each, value)), None)
            if writer is None:
                continue
            key = (value.id, writer.id)
            if key not in moved:
                moved[key] = _moved(graph, value, writer)
            node.inputs = (*node.inputs[:slot], moved[key], *node.inputs[slot + 1 :])


def _writes(node: Node, value: Value) -> bool:
    return any(node.inputs[slot] is value for slot in node.definition.mutates)


def _moved(graph: Graph, value: Value, before: Node) -> Value:
    """A copy of a parameter, made before another operator runs."""
    node = graph.add_node(Primitive("TensorMove"), [value], before.scope, before.source)
    graph.nodes.insert(graph.nodes.index(before), graph.nodes.pop())
    return node.outputs[0]


def _ones(graph: Graph, type: TensorType) -> Value:
    return graph.add_constant(np.ones(type.shape, dtypes.dtype(type.dtype).numpy), type.dtype)


def depending(nodes: Sequence[Node], wrt: Sequence[Value]) -> set[int]:
    """Ids of the values that depend on `wrt`, themselves included."""
    needed = {value.id for value in wrt}
    for node in nodes:
        if node.primitive.op_type in _STOPS:
            continue
        if any(value.id in needed for value in node.inputs):
            needed.update(value.id for value in node.outputs)
    return needed


_STOPS = frozenset({"StopGradient"})


def _total(builder: GradBuilder, parts: list[Value]) -> Value | None:
    if len(parts) <= 1:
        return parts[0] if parts else None
    return _added(builder, parts)


def _added(builder: GradBuilder, parts: list[Value]) -> Value:
    """Source: MindSpore joins the gradients of a value with one AddN."""
    return builder.add("AddN", parts)
