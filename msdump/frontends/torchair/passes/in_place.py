"""Which operators can write their result over their first argument."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from msdump.frontends.torchair.passes.fake_values import have_same_form, tensor_of
from msdump.frontends.torchair.passes.storages import Storages

# Not element-wise, but they compute on a copy of their first argument all the same.
_ON_A_COPY = {"index_put", "index_add", "index_copy", "index_fill", "masked_scatter", "scatter", "scatter_add"}


def in_place_overload(node: Node) -> Any:
    """The variant of the node's operator that writes into its first argument; None when there is none.

    The result must have the argument's dtype, shape and strides: the kernel then makes the same steps.
    """
    target: Any = node.target
    if node.op != "call_function" or not isinstance(target, torch._ops.OpOverload) or target.namespace != "aten":
        return None
    name = target._schema.name.partition("::")[2]
    if torch.Tag.pointwise not in target.tags and name not in _ON_A_COPY:
        return None
    if target._schema.is_mutable or torch.Tag.nondeterministic_seeded in target.tags or "out" in node.kwargs:
        return None
    packet = getattr(torch.ops.aten, f"{name}_", None)
    overload = getattr(packet, target._overloadname, None)
    if overload is None or not node.args or not have_same_form(tensor_of(node.args[0]), tensor_of(node)):
        return None
    before, after = target._schema.arguments, overload._schema.arguments
    same = [(a.name, str(a.type)) for a in before] == [(a.name, str(a.type)) for a in after]
    return overload if same and after[0].alias_info is not None and after[0].alias_info.is_write else None


def reads_elsewhere(node: Node, storages: Storages) -> bool:
    """Does the node read the memory of its first argument through another argument as well?"""
    first = node.args[0]
    assert isinstance(first, Node)
    is_elementwise = torch.Tag.pointwise in node.target.tags  # type: ignore[union-attr]
    found: list[Node] = []
    _collect(node.args[1:], found)
    _collect(tuple(node.kwargs.values()), found)
    # An element-wise operator may read the very tensor that it writes.
    return any(storages.share(other, first) and not (is_elementwise and other is first) for other in found)


def _collect(value: Any, found: list[Node]) -> None:
    if isinstance(value, Node):
        found.append(value)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _collect(item, found)
