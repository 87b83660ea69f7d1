"""Pass reinplace_input_mutated_ops: what is copied into an input in the end is computed there."""

from __future__ import annotations

import torch
from torch.fx import GraphModule, Node

from msdump.frontends.torchair.passes.fx_pass import PassContext
from msdump.frontends.torchair.passes.in_place import in_place_overload, reads_elsewhere
from msdump.frontends.torchair.passes.promised_shapes import promised
from msdump.frontends.torchair.passes.storages import Storages


def run(module: GraphModule, _: PassContext) -> bool:
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
