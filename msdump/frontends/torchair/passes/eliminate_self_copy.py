"""Pass eliminate_self_copy: a tensor need not be copied onto itself."""

from __future__ import annotations

import torch
from torch.fx import GraphModule

from msdump.frontends.torchair.passes.fx_pass import PassContext


def run(module: GraphModule, _: PassContext) -> bool:
    """Take out `x.copy_(x)`."""
    is_changed = False
    for node in list(module.graph.nodes):
        is_copy = node.op == "call_function" and node.target is torch.ops.aten.copy_.default
        if is_copy and node.args[0] is node.args[1]:
            node.replace_all_uses_with(node.args[0])
            module.graph.erase_node(node)
            is_changed = True
    return is_changed
