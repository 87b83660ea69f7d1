"""Pass view_to_reshape: every view becomes a reshape, which needs no contiguous input."""

from __future__ import annotations

import torch
from torch.fx import GraphModule

from msdump.frontends.torchair.passes.fx_pass import PassContext

aten = torch.ops.aten


def run(module: GraphModule, _: PassContext) -> bool:
    """Turn `aten.view` into `aten.reshape`: the same view wherever a view was possible."""
    views = [node for node in module.graph.nodes if node.op == "call_function" and node.target is aten.view.default]
    for node in views:
        node.target = aten.reshape.default
    return bool(views)
