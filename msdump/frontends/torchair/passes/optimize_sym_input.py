"""Pass optimize_sym_input: sizes that came as inputs are read from the tensors that have them."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from msdump.frontends.torchair.passes.fake_values import describe
from msdump.frontends.torchair.passes.fx_pass import PassContext


def run(module: GraphModule, _: PassContext) -> bool:
    """Replace each symbolic input that is a dimension of a tensor input by `aten.sym_size` of that tensor.

    The input itself stays, unused: the caller goes on passing it.
    """
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    if not inputs:
        return False
    is_changed = False
    for node in inputs:
        symbol = _symbol(node.meta.get("val"))
        place = None if symbol is None or not node.users else _dimension(inputs, symbol)
        if place is None:
            continue
        tensor, dimension = place
        with module.graph.inserting_after(inputs[-1]):
            size = module.graph.call_function(torch.ops.aten.sym_size.int, (tensor, dimension))
        describe(size, node.meta["val"], node)
        node.replace_all_uses_with(size)
        is_changed = True
    return is_changed


def _symbol(value: Any) -> Any:
    """The sympy symbol of a size that is nothing but one symbol."""
    expression = value.node.expr if isinstance(value, torch.SymInt) else None
    return expression if getattr(expression, "is_symbol", False) else None


def _dimension(inputs: list[Node], symbol: Any) -> tuple[Node, int] | None:
    for node in inputs:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            for dimension, size in enumerate(value.shape):
                if _symbol(size) == symbol:
                    return node, dimension
    return None
