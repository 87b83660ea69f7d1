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
    if _drop_repeated(backward):
        # What only they read goes too.
        backward.graph.eliminate_dead_code()
        backward.recompile()
    return forward, backward


def _drop_repeated(backward: GraphModule) -> bool:
    is_changed = False
    for node in reversed(list(backward.graph.nodes)):
        if not node.users and _is_effect_of_forward(node):
            backward.graph.erase_node(node)
            is_changed = True
    return is_changed


def _is_effect_of_forward(node: Node) -> bool:
    """True for what does something beside its result, other than write a tensor or draw random numbers."""
    target: Any = node.target
    schema = getattr(target, "_schema", None)
    return (
        node.op == "call_function"
        and node.meta.get("partitioner_tag") == _FORWARD
        and schema is not None
        and not schema.is_mutable
        and torch.Tag.nondeterministic_seeded not in target.tags
        and node.is_impure()
    )
