"""Passes about views.

recover_view_inplace_pattern   `x[1:3] += 1` on an input writes that part of it again, not all of it
view_to_reshape                every view becomes a reshape, which needs no contiguous input
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from msdump.torchair.passes.fake_values import computed, describe, have_same_form, tensor_of
from msdump.torchair.passes.fx_pass import PassContext
from msdump.torchair.passes.simplify import eliminate_dead_code
from msdump.torchair.passes.storages import Storages

aten = torch.ops.aten
_VIEW_BY_SCATTER: dict[Any, Any] = {
    aten.slice_scatter.default: aten.slice.Tensor,
    aten.select_scatter.default: aten.select.int,
}


def recover_view_inplace_pattern(module: GraphModule, context: PassContext) -> bool:
    """Undo what functionalisation made of writes through a view.

        view(scatter(base, part)) -> part
        scatter(scatter(base, old), new) -> scatter(base, new)
        copy_(input, scatter(input, part)) -> copy_(view(input), part)

    Edges:  the last one only where the input's old values are not read afterwards, the result is not returned, and the
            part does not lie in the input itself.
    """
    is_changed = False
    for node in list(module.graph.nodes):
        if node.target in _VIEW_BY_SCATTER and node.op == "call_function":
            is_changed |= _forward_part(module, node) | _skip_overwritten(node)
    if is_changed:
        eliminate_dead_code(module, context)
    for node in list(module.graph.nodes):
        if node.op == "call_function" and node.target is aten.copy_.default:
            is_changed |= _write_part(module, node)
    return is_changed


def _where(node: Node) -> tuple[Any, ...]:
    """Which part a scatter writes or a view reads: the arguments behind the tensors."""
    count = 2 if node.target in _VIEW_BY_SCATTER else 1
    return (*node.args[count:], *sorted(node.kwargs.items()))


def _forward_part(module: GraphModule, scatter: Node) -> bool:
    part = scatter.args[1]
    is_changed = False
    for user in list(scatter.users):
        is_view = user.target is _VIEW_BY_SCATTER[scatter.target] and user.args[0] is scatter
        if not is_view or _where(user) != _where(scatter) or not isinstance(part, Node):
            continue
        # What is returned or handed to something unknown may be told apart by its memory.
        if have_same_form(tensor_of(user), tensor_of(part)) and _is_read_only(user):
            user.replace_all_uses_with(part)
            module.graph.erase_node(user)
            is_changed = True
    return is_changed


def _is_read_only(node: Node) -> bool:
    return all(
        isinstance(user.target, torch._ops.OpOverload)
        and not any(argument.alias_info is not None for argument in user.target._schema.arguments)
        for user in node.users
    )


def _skip_overwritten(scatter: Node) -> bool:
    base = scatter.args[0]
    if not isinstance(base, Node) or base.target is not scatter.target or _where(base) != _where(scatter):
        return False
    scatter.replace_input_with(base, base.args[0])  # type: ignore[arg-type]
    return True


def _write_part(module: GraphModule, copy: Node) -> bool:
    destination, scatter = copy.args[0], copy.args[1]
    if not isinstance(destination, Node) or not isinstance(scatter, Node) or copy.users:
        return False
    if scatter.target not in _VIEW_BY_SCATTER or destination.op != "placeholder" or scatter.args[0] is not destination:
        return False
    part = scatter.args[1]
    storages = Storages(module.graph)
    if not isinstance(part, Node) or storages.share(part, destination) or storages.is_output(scatter):
        return False
    if any(reader is not copy for reader in storages.readers_after(destination, scatter)):
        return False
    if not have_same_form(tensor_of(scatter), tensor_of(destination)):
        return False
    view_target = _VIEW_BY_SCATTER[scatter.target]
    view_args = (destination, *scatter.args[2:])
    value = computed(view_target, view_args, scatter.kwargs)
    if value is None:
        return False
    with module.graph.inserting_before(scatter):
        view = module.graph.call_function(view_target, view_args, dict(scatter.kwargs))
        describe(view, value, scatter)
        write = module.graph.call_function(aten.copy_.default, (view, part))
        describe(write, value, copy)
    module.graph.erase_node(copy)
    scatter.replace_all_uses_with(destination)
    module.graph.erase_node(scatter)
    return True


aten = torch.ops.aten


def view_to_reshape(module: GraphModule, _: PassContext) -> bool:
    """Turn `aten.view` into `aten.reshape`: the same view wherever a view was possible."""
    views = [node for node in module.graph.nodes if node.op == "call_function" and node.target is aten.view.default]
    for node in views:
        node.target = aten.reshape.default
    return bool(views)
