"""Pass reinplace_inplaceable_ops_pass: an operator overwrites an intermediate value that nobody needs any more."""

from __future__ import annotations

from torch.fx import GraphModule, Node

from msdump.frontends.torchair.passes.fx_pass import PassContext
from msdump.frontends.torchair.passes.in_place import in_place_overload, reads_elsewhere
from msdump.frontends.torchair.passes.promised_shapes import promised
from msdump.frontends.torchair.passes.storages import Storages


def run(module: GraphModule, _: PassContext) -> bool:
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
