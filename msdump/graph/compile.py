"""From a traced program to one that can run: dead code, order, names, checks; on Ascend also formats and streams."""

from __future__ import annotations

from msdump.graph.device_formats import assign_device_formats
from msdump.graph.graph import Graph
from msdump.graph.schedule import remove_dead_nodes, schedule
from msdump.graph.streams import assign_streams

ASCEND = "Ascend"


def finish(graph: Graph, device_target: str = "CPU") -> Graph:
    """Remove dead nodes, fix the execution order, number the operators, check everything.

    device_target   "Ascend" gives tensors device formats and operators streams; for any other both stay as they are
    Raises: GraphError from `Graph.lint`.
    """
    remove_dead_nodes(graph)
    schedule(graph)
    graph.number()
    graph.lint()
    if device_target == ASCEND:
        assign_device_formats(graph)
        assign_streams(graph)
    return graph
