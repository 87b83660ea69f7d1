"""Streams: which of an Ascend device's queues each operator is launched on."""

from __future__ import annotations

from msdump.graph.graph import Graph, Node
from msdump.graph.schedule import dependencies

MAX_STREAMS = 4


def assign_streams(graph: Graph) -> None:
    """Set `Node.stream_id`, so that operators that do not wait for each other may run side by side.

    An operator follows the one that it waits for when that was the last on its stream; else it opens a stream, up to
    four, or takes the one that has been idle longest. The same graph always gets the same streams.
    """
    needs = dependencies(graph.nodes)
    place = {node.id: index for index, node in enumerate(graph.nodes)}
    last: list[Node] = []
    for node in graph.nodes:
        waits_for = {need.id for need in needs[node.id]}
        stream_id = next((at for at, tail in enumerate(last) if tail.id in waits_for), len(last))
        if stream_id == MAX_STREAMS:
            stream_id = min(range(MAX_STREAMS), key=lambda at: place[last[at].id])
        if stream_id == len(last):
            last.append(node)
        last[stream_id] = node
        node.stream_id = stream_id
