"""Nodes whose shape is only a promise: it comes from an operator that a script registered."""

from __future__ import annotations

import torch
from torch.fx import Graph, Node

from msdump.frontends.torchair.passes.storages import PURE_NAMESPACES


def promised(graph: Graph) -> set[Node]:
    """Operators from outside PyTorch, and all that is computed from their results.

    PyTorch does not check what `register_fake` says: a result of another shape than promised runs well as long as
    every operator makes memory of its own, and is wrong or refused where memory of the promised shape is written.
    """
    found: set[Node] = set()
    for node in graph.nodes:
        if _is_foreign(node) or not found.isdisjoint(node.all_input_nodes):
            found.add(node)
    return found


def _is_foreign(node: Node) -> bool:
    target = node.target
    if node.op != "call_function" or not isinstance(target, torch._ops.OpOverload):
        return False
    return target.namespace not in (*PURE_NAMESPACES, "_c10d_functional", "_c10d_functional_autograd", "inductor")
