"""explicit_order_for_side_effect_nodes: operators that do more than compute keep their order."""

from __future__ import annotations

from msdump.frontends.torchair.configs.compiler_config import CompilerConfig
from msdump.frontends.torchair.ge.graph import NET_OUTPUT, GeGraph, GeOp
from msdump.frontends.torchair.ge.passes.uses import mutated_input, readers_by_tensor

COLLECTIVE, OTHERS = "Hcom", ("Print", "PrintV2", "Assert")


def explicit_order_for_side_effect_nodes(graph: GeGraph, config: CompilerConfig) -> None:
    """A control edge from each of them to the next, and to NetOutput from a last one that nobody reads.

    Source: TorchAir. The order of execution here is that of `graph.ops` anyway; the edges say it to whoever reads the
    graph.
    """
    readers = readers_by_tensor(graph)
    last: GeOp | None = None
    for op in graph.ops:
        if op.type == NET_OUTPUT:
            is_unread = last is not None and not any(tensor in readers for tensor in last.outputs)
            _order(last if is_unread else None, op)
        elif _has_side_effect(op):
            _order(last, op)
            last = op


def _has_side_effect(op: GeOp) -> bool:
    return op.type.startswith(COLLECTIVE) or op.type in OTHERS or mutated_input(op) is not None


def _order(first: GeOp | None, second: GeOp) -> None:
    """Say that one comes after the other, unless it reads it."""
    if first is not None and first not in second.producers and first not in second.controls:
        second.controls.append(first)
