"""remove_dead_data_and_reorder_data_index: inputs that nobody reads are no operators of the graph."""

from __future__ import annotations

from msdump.frontends.torchair.configs.compiler_config import CompilerConfig
from msdump.frontends.torchair.ge.graph import GeGraph
from msdump.frontends.torchair.ge.passes.uses import readers_by_tensor


def remove_dead_data_and_reorder_data_index(graph: GeGraph, config: CompilerConfig) -> None:
    """Take unread Data out and number the rest from 0. `graph.arguments` still knows which argument is which."""
    readers = readers_by_tensor(graph)
    kept = {id(op) for op, _ in graph.write_backs}
    graph.remove(op for op in graph.inputs if op.outputs[0] not in readers and id(op) not in kept)
    for index, op in enumerate(graph.inputs):
        op.attrs["index"] = index
