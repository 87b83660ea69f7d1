"""Cut the joint graph of a training into forward and backward, so that what a forward operator does happens once."""

from __future__ import annotations

from typing import Any

import torch
from torch._functorch.partitioners import default_partition
from torch.fx import GraphModule, Node

_FORWARD = "is_forward"


def partition(joint: GraphModule, *args: Any, **kwargs: Any) -> tuple[GraphModule, GraphModule]:
    """As PyTorch's default_partition.

    Edges: an operator that has an effect, such as a print, stays in the forward graph alone. PyTorch copies it into the
           backward graph as well when its inputs are saved for that, where it would print once more.
    """
    forward, backward = default_partition(joint, *args, **kwargs)
    if _drop_repeated(forward, backward):
        # What only they read goes too.
        backward.graph.eliminate_dead_code()
        backward.recompile()
    return forward, backward


def _drop_repeated(forward: GraphModule, backward: GraphModule) -> bool:
    is_changed = False
    names = {node.name for node in forward.graph.nodes}
    for node in reversed(list(backward.graph.nodes)):
        # PyTorch 2.5 has no tags; there, what stands in both graphs is taken for an operator of the forward one.
        tag = node.meta.get("partitioner_tag", _FORWARD if node.name in names else None)
        if not node.users and tag == _FORWARD and _is_effect(node):
            backward.graph.erase_node(node)
            is_changed = True
    return is_changed


def _is_effect(node: Node) -> bool:
    """True for what does something beside its result, other than write a tensor or draw random numbers."""
    target: Any = node.target
    schema = getattr(target, "_schema", None)
    return (
        node.op == "call_function"
        and schema is not None
        and not schema.is_mutable
        and torch.Tag.nondeterministic_seeded not in target.tags
        and node.is_impure()
    )
