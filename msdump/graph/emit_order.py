"""`ms_execution_order_graph_{graph_id}.csv`: the kernels of a graph in launch order."""

from __future__ import annotations

from msdump.graph.graph import Graph

HEADER = "NodeExecutionOrder-FullNameWithScope"


def order_csv_text(graph: Graph) -> str:
    """Header, then one full name per line; bookkeeping nodes (Depend) are not launched and not listed."""
    return "".join(f"{line}\n" for line in (HEADER, *(node.full_name for node in graph.kernels)))
