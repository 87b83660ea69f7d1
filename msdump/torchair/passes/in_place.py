"""Passes about operators that write into one of their arguments.

reinplace_inplaceable_ops_pass   an operator overwrites an intermediate value that is not read again
reinplace_input_mutated_ops      what is copied into an input in the end is computed there
decompose_auto_functionalized    custom operators that write get their copies and their real name back
eliminate_self_copy              a tensor is not copied onto itself
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch.fx import GraphModule, Node

from msdump.torchair.passes.fake_values import have_same_form, tensor_of
from msdump.torchair.passes.fx_pass import PassContext
from msdump.torchair.passes.storages import Storages, promised


def reinplace_inplaceable_ops_pass(module: GraphModule, _: PassContext) -> bool:
    """Turn `b = a + 1` into `b = a.add_(1)` where `a` was computed by this graph and is read here for the last time.

    Edges: inputs, constants and what is returned are never overwritten, nor what the operator reads twice, nor memory
           whose shape an operator of the script only promises.
    """
    is_changed = False
    storages = Storages(module.graph)
    promises = promised(module.graph)
    for node in module.graph.nodes:
        overload = None if node in promises else in_place_overload(node)
        if overload is None:
            continue
        first = node.args[0]
        assert isinstance(first, Node)
        if storages.is_input(first) or storages.is_output(first) or reads_elsewhere(node, storages):
            continue
        if any(True for _ in storages.readers_after(first, node)):
            continue
        node.target = overload
        storages.join(node, first)
        is_changed = True
    return is_changed


def reinplace_input_mutated_ops(module: GraphModule, _: PassContext) -> bool:
    """Turn `t = x + 1; x.copy_(t)` on an input `x` into `x.add_(1)`.

    Edges: not where the old value is read in between, the result is returned, or something else was to be written, nor
           where an operator of the script only promises the shape.
    """
    is_changed = False
    storages = Storages(module.graph)
    promises = promised(module.graph)
    for copy in list(module.graph.nodes):
        if copy.op == "call_function" and copy.target is torch.ops.aten.copy_.default and copy not in promises:
            is_changed |= _write_in_place(module, copy, storages)
    return is_changed


def _write_in_place(module: GraphModule, copy: Node, storages: Storages) -> bool:
    destination, result = copy.args[0], copy.args[1]
    if not isinstance(destination, Node) or not isinstance(result, Node) or copy.users:
        return False
    if destination.op != "placeholder" or not result.args or result.args[0] is not destination:
        return False
    overload = in_place_overload(result)
    if overload is None or storages.is_input(result) or storages.is_output(result):
        return False
    if reads_elsewhere(result, storages) or any(r is not copy for r in storages.readers_after(destination, result)):
        return False
    result.target = overload
    storages.forget(copy)
    storages.join(result, destination)
    module.graph.erase_node(copy)
    return True


def decompose_auto_functionalized(module: GraphModule, _: PassContext) -> bool:
    """Replace `auto_functionalized(op, x=x)` by a copy of `x` and a call of `op` on it."""
    higher = torch.ops.higher_order
    wrapped = {higher.auto_functionalized, higher.auto_functionalized_v2}
    if not any(node.op == "call_function" and node.target in wrapped for node in module.graph.nodes):
        return False
    # Takes a second to import, so only graphs that need it pay; PyTorch deprecates what it uses there itself.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from torch._inductor.fx_passes.post_grad import decompose_auto_functionalized as decompose

    decompose(module.graph)  # type: ignore[no-untyped-call]
    return True


def eliminate_self_copy(module: GraphModule, _: PassContext) -> bool:
    """Take out `x.copy_(x)`."""
    is_changed = False
    for node in list(module.graph.nodes):
        is_copy = node.op == "call_function" and node.target is torch.ops.aten.copy_.default
        if is_copy and node.args[0] is node.args[1]:
            node.replace_all_uses_with(node.args[0])
            module.graph.erase_node(node)
            is_changed = True
    return is_changed


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
    nodes: list[Node] = []
    _collect(node.args[1:], nodes)
    _collect(tuple(node.kwargs.values()), nodes)
    # An element-wise operator may read the very tensor that it writes.
    return any(storages.share(node, first) and not (is_elementwise and node is first) for node in nodes)


def _collect(value: object, nodes: list[Node]) -> None:
    if isinstance(value, Node):
        nodes.append(value)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _collect(item, nodes)
