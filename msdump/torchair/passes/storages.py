"""Memory of a graph: which nodes share, read and write it, and whose shape is only a hint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import Graph, Node

# They say nothing of it in their schemas, and may hand out their input all the same.
_SILENT_ALIASES = ("_unsafe_view", "native_dropout")
PURE_NAMESPACES = ("aten", "prims")


class Storages:
    """Sets of nodes that may share memory; a pass that changes the graph keeps them right with `join` and `replace`.

    Unsure means shared: higher-order operators and operators from outside PyTorch may return what they got.
    """

    def __init__(self, graph: Graph) -> None:
        self.position = {node: number for number, node in enumerate(graph.nodes)}
        self._members: dict[Node, set[Node]] = {}
        self._outputs: set[Node] = set()
        self._written: set[Node] = set()
        for node in graph.nodes:
            self.add(node, self.position[node])
            if node.op == "output":
                self._outputs.update(node.all_input_nodes)

    def add(self, node: Node, position: float) -> None:
        """Add a new node, which runs at that position."""
        self.position[node] = int(position)
        self._members[node] = {node}
        for source in _shared_inputs(node):
            self.join(node, source)
        self._written.update(written_inputs(node))

    def join(self, first: Node, second: Node) -> None:
        """From here on these two share memory."""
        small, large = sorted((self._members[first], self._members[second]), key=len)
        if small is not large:
            large |= small
            for node in small:
                self._members[node] = large

    def replace(self, node: Node, replacement: Node) -> None:
        """`replacement` takes the place of `node`, which goes away."""
        self.join(node, replacement)
        if node in self._outputs:
            self._outputs.add(replacement)
        self.forget(node)

    def forget(self, node: Node) -> None:
        """The node goes away."""
        self._members.pop(node).discard(node)
        self._outputs.discard(node)
        self._written.discard(node)

    def share(self, first: Node, second: Node) -> bool:
        """Do two nodes share memory?"""
        return self._members[first] is self._members[second]

    def is_input(self, node: Node) -> bool:
        """Does it share memory with an input of the graph or with a constant?"""
        return any(member.op in ("placeholder", "get_attr") for member in self._members[node])

    def is_output(self, node: Node) -> bool:
        """Does it share memory with something that the graph returns?"""
        return not self._outputs.isdisjoint(self._members[node])

    def is_returned(self, node: Node) -> bool:
        """Does the graph return this very node?"""
        return node in self._outputs

    def is_written(self, node: Node) -> bool:
        """Does an operator write into its memory?"""
        return not self._written.isdisjoint(self._members[node])

    def readers_after(self, node: Node, reference: Node) -> Iterator[Node]:
        """Nodes behind `reference` that take something that shares memory with `node`."""
        for member in self._members[node]:
            for user in member.users:
                if self.position[user] > self.position[reference]:
                    yield user


def written_inputs(node: Node) -> list[Node]:
    """Inputs that the operator of this node writes into."""
    schema = getattr(node.target, "_schema", None)
    if node.op != "call_function" or schema is None or not schema.is_mutable:
        return []
    return _aliased_inputs(node, schema, is_written=True)


def _shared_inputs(node: Node) -> list[Node]:
    """Inputs whose memory the results may share."""
    if node.op != "call_function":
        return []
    target: Any = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return node.all_input_nodes
    if target.namespace not in PURE_NAMESPACES or target._schema.name.partition("::")[2] in _SILENT_ALIASES:
        return node.all_input_nodes
    return _aliased_inputs(node, target._schema)


def _aliased_inputs(node: Node, schema: Any, is_written: bool = False) -> list[Node]:
    """Inputs that the schema says results may share memory with, or the operator writes."""
    inputs: list[Node] = []
    for number, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and (argument.alias_info.is_write or not is_written):
            value = node.args[number] if number < len(node.args) else node.kwargs.get(argument.name)
            inputs += [item for item in _flat(value) if isinstance(item, Node)]
    return inputs


def _flat(value: object) -> list[object]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def promised(graph: Graph) -> set[Node]:
    """Operators from outside PyTorch, and all that is computed from their results.

    PyTorch does not check what `register_fake` says: a result of another shape than promised runs well as long as
    every operator makes memory of its own, and is wrong or refused where memory of the promised shape is written.
    """
    nodes: set[Node] = set()
    for node in graph.nodes:
        if _is_foreign(node) or not nodes.isdisjoint(node.all_input_nodes):
            nodes.add(node)
    return nodes


def _is_foreign(node: Node) -> bool:
    target = node.target
    if node.op != "call_function" or not isinstance(target, torch._ops.OpOverload):
        return False
    return target.namespace not in (*PURE_NAMESPACES, "_c10d_functional", "_c10d_functional_autograd", "inductor")
