"""From a traced program to one that can run: dead code, order, names, checks."""

from __future__ import annotations

from msdump.graph.graph import Graph
from msdump.graph.schedule import remove_dead_nodes, schedule


def finish(graph: Graph) -> Graph:
    """Remove dead nodes, fix the execution order, number the operators, check everything.

    Raises: GraphError from `Graph.lint`.
    """
    remove_dead_nodes(graph)
    schedule(graph)
    graph.number()
    graph.lint()
    return graph
