"""Pass eliminate_dead_code: takes out what nobody reads."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import GraphModule, Node

from msdump.frontends.torchair.passes.fx_pass import PassContext

_PURE_NAMESPACES = ("aten", "prims")
_PURE_MODULES = ("_operator", "math", "builtins")


def run(module: GraphModule, _: PassContext) -> bool:
    """Take out calls without users, last ones first.

    Edges: what writes, draws random numbers, checks, talks to other processes, or is not PyTorch's own stays.
    """
    is_changed = False
    for node in reversed(list(module.graph.nodes)):
        if not node.users and is_pure(node):
            module.graph.erase_node(node)
            is_changed = True
    return is_changed


def is_pure(node: Node) -> bool:
    """Does nothing but its result come of it?"""
    if node.op == "get_attr":
        return True
    if node.op != "call_function":
        return False
    target: Any = node.target
    if target is operator.getitem:
        return True
    if not isinstance(target, torch._ops.OpOverload):
        return getattr(target, "__module__", None) in _PURE_MODULES
    schema = target._schema
    return (
        target.namespace in _PURE_NAMESPACES
        and not schema.is_mutable
        and bool(schema.returns)
        and torch.Tag.nondeterministic_seeded not in target.tags
        and not schema.name.startswith(("aten::_assert", "aten::sym_constrain"))
    )
