"""From a traced program to one that can run: dead code, order, names, checks; on Ascend also formats and streams.

The order is what MindSpore launches when, seen in its real order files: forward operators keep the order in which the
script called them. Backward operators of one cell stay together: first the gradients of its parameters, then those of
its inputs. An optimizer update runs as soon as the cell that makes its gradient is done, so that memory of gradients is
freed early.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence

from msdump.graph.graph import Graph, Node
from msdump.mindspore.program.cut import Part, cut
from msdump.mindspore.program.device_formats import assign_device_formats
from msdump.mindspore.program.regions import drop_unread

ASCEND = "Ascend"
UPDATE = "update"
MAX_STREAMS = 4


def finish(graph: Graph, device_target: str = "CPU") -> Graph:
    """Remove dead nodes, fix the execution order, number the operators, check everything.

    device_target   "Ascend" gives tensors device formats and operators streams; for any other both stay as they are
    Raises: GraphError from `Graph.lint`.
    """
    remove_dead_nodes(graph)
    schedule(graph)
    graph.number()
    _check(graph, device_target)
    return graph


def finish_program(program: Graph, device_target: str = "CPU") -> Part:
    """As `finish`, for a program with control flow: its pieces, graphs without."""
    remove_dead_nodes(program)
    _schedule_regions(program)
    part = cut(program)
    for piece in part.pieces():
        _check(piece.graph, device_target)
    return part


def _check(graph: Graph, device_target: str) -> None:
    graph.lint()
    if device_target == ASCEND:
        assign_device_formats(graph)
        assign_streams(graph)


def _schedule_regions(graph: Graph) -> None:
    schedule(graph)
    for node in graph.nodes:
        for region in node.regions:
            _schedule_regions(region)


# -- order -------------------------------------------------------------------------------------------------------------


def remove_dead_nodes(graph: Graph) -> None:
    """Drop nodes without side effects whose results nobody reads, and constants and parameters nobody reads."""
    wanted = {value.id for value in graph.outputs}
    graph.nodes = _live_nodes(graph, wanted)
    graph.constants = [value for value in graph.constants if value.id in wanted]
    graph.parameters = [value for value in graph.parameters if value.id in wanted]
    graph.parameter_order = [value for value in graph.parameter_order if value.id in wanted or value.parameter is None]


def _live_nodes(graph: Graph, wanted: set[int]) -> list[Node]:
    """Nodes that are needed for the values `wanted`, which gets what they read."""
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if node.definition.has_side_effect or any(value.id in wanted for value in node.outputs):
            if node.regions:
                drop_unread(node, wanted)
                for region in reversed(node.regions):
                    wanted.update(value.id for value in region.outputs)
                    region.nodes = _live_nodes(region, wanted)
                drop_unread(node, wanted)
            wanted.update(value.id for value in node.inputs)
            kept.append(node)
    return kept[::-1]


def schedule(graph: Graph) -> None:
    """Put `graph.nodes` into execution order.   Source: execution order of real AlexNet and LeNet-5 runs."""
    needs = dependencies(graph.nodes)
    groups = _ordered_groups(graph, needs)
    group_of: dict[int, int] = {node.id: at for at, group in enumerate(groups) for node in group}
    place: dict[int, int] = {}
    for node in graph.nodes:
        if node.stage == UPDATE:
            # After the group of its last operand; -1 when it depends on no other operator.
            place[node.id] = max((_place_of(need, group_of, place) for need in needs[node.id]), default=-1)
    _place_beside_first_update(place, groups, needs)
    updates: dict[int, list[Node]] = defaultdict(list)
    scheduled: set[int] = set()
    read_by_update = {value.id for node in graph.nodes if node.stage == UPDATE for value in node.inputs}
    for node in sorted((n for n in graph.nodes if n.stage == UPDATE), key=lambda n: place[n.id]):
        if node.definition.mutates or not any(value.id in read_by_update for value in node.outputs):
            _schedule_with_needs(node, place[node.id], needs, updates, scheduled)
    order = list(updates[-1])
    for at, group in enumerate(groups):
        order.extend(group)
        order.extend(updates[at])
    graph.nodes = order


def _place_beside_first_update(place: dict[int, int], groups: list[list[Node]], needs: dict[int, list[Node]]) -> None:
    """Move updates that wait for no operator, such as the count of steps, to the first one that waits for a gradient.

    Source: execution order of a real LeNet-5 run of MindSpore 2.7.0. What an operator of the network waits for stays
    ahead of it.
    """
    first = min((at for at in place.values() if at >= 0), default=len(groups) - 1)
    waited_for: dict[int, int] = {}
    for at in reversed(range(len(groups))):
        waited_for.update((need.id, at) for node in groups[at] for need in needs[node.id])
    for node_id, at in place.items():
        if at < 0:
            place[node_id] = min(first, waited_for.get(node_id, len(groups)) - 1)


def _place_of(node: Node, group_of: dict[int, int], place: dict[int, int]) -> int:
    return place[node.id] if node.stage == UPDATE else group_of[node.id]


def _schedule_with_needs(
    node: Node, at: int, needs: dict[int, list[Node]], updates: dict[int, list[Node]], scheduled: set[int]
) -> None:
    """Place `node`, and just before it what only it waits for: operands of an update live no longer than needed."""
    stack: list[tuple[Node, bool]] = [(node, False)]
    while stack:
        current, is_ready = stack.pop()
        if current.id in scheduled:
            continue
        if is_ready:
            scheduled.add(current.id)
            updates[at].append(current)
            continue
        stack.append((current, True))
        stack.extend((need, False) for need in reversed(needs[current.id]) if need.stage == UPDATE)


def dependencies(nodes: Sequence[Node]) -> dict[int, list[Node]]:
    """Node id -> nodes that must run before it: makers of its operands, and order of reads and writes of memory.

    What nodes around a region make is there when the region runs.
    """
    members = {node.id for node in nodes}
    needs: dict[int, list[Node]] = {}
    root: dict[int, int] = {}
    writer: dict[int, Node] = {}
    readers: dict[int, list[Node]] = defaultdict(list)
    last_printed: Node | None = None
    for node in nodes:
        found: dict[int, Node] = {}
        for value in node.inputs:
            if value.node is not None and value.node.id in members:
                found[value.node.id] = value.node
            storage = root.get(value.id, value.id)
            if storage in writer:
                found[writer[storage].id] = writer[storage]
        definition = node.definition
        for slot in definition.mutates:
            storage = root.get(node.inputs[slot].id, node.inputs[slot].id)
            found.update((reader.id, reader) for reader in readers.pop(storage, []))
        if definition.has_side_effect and not definition.mutates:
            if last_printed is not None:
                found[last_printed.id] = last_printed
            last_printed = node
        found.pop(node.id, None)
        needs[node.id] = list(found.values())
        for value in node.inputs:
            readers[root.get(value.id, value.id)].append(node)
        for slot in definition.mutates:
            writer[root.get(node.inputs[slot].id, node.inputs[slot].id)] = node
        _follow_storage(node, root)
    return needs


def _follow_storage(node: Node, root: dict[int, int]) -> None:
    definition = node.definition
    for value in node.outputs:
        slot = definition.aliases.get(value.index, definition.views.get(value.index))
        if slot is not None:
            source = node.inputs[slot].id
            root[value.id] = root.get(source, source)


def _ordered_groups(graph: Graph, needs: dict[int, list[Node]]) -> list[list[Node]]:
    """Nodes but for updates, cut where the cell changes; backward groups in their own order."""
    groups: list[list[Node]] = []
    previous: tuple[str, str] | None = None
    for node in graph.nodes:
        if node.stage == UPDATE:
            continue
        cell = (node.stage, node.forward.scope if node.forward else "")
        if cell != previous or node.stage != "backward":
            groups.append([])
        groups[-1].append(node)
        previous = cell
    inner = _read_by_backward(graph.nodes)
    position = {node.id: at for at, node in enumerate(graph.nodes)}
    return [_parameter_gradients_first(group, needs, inner, position) if len(group) > 1 else group for group in groups]


def _read_by_backward(nodes: Iterable[Node]) -> set[int]:
    return {value.id for node in nodes if node.stage != UPDATE for value in node.inputs}


def _parameter_gradients_first(
    group: list[Node], needs: dict[int, list[Node]], inner: set[int], position: dict[int, int]
) -> list[Node]:
    """Topological order that prefers results no other backward operator reads, in the order of the forward calls."""

    def priority(node: Node) -> tuple[int, int, int]:
        is_inner = any(value.id in inner for value in node.outputs)
        forward = position.get(node.forward.id, 0) if node.forward and not is_inner else 0
        return (int(is_inner), forward, position[node.id])

    members = {node.id for node in group}
    waiting = {node.id: sum(need.id in members for need in needs[node.id]) for node in group}
    followers: dict[int, list[Node]] = defaultdict(list)
    for node in group:
        for need in needs[node.id]:
            if need.id in members:
                followers[need.id].append(node)
    ready = [(priority(node), node.id, node) for node in group if waiting[node.id] == 0]
    heapq.heapify(ready)
    order: list[Node] = []
    while ready:
        node = heapq.heappop(ready)[2]
        order.append(node)
        for follower in followers[node.id]:
            waiting[follower.id] -= 1
            if waiting[follower.id] == 0:
                heapq.heappush(ready, (priority(follower), follower.id, follower))
    return order


# -- streams: which of an Ascend device's queues each operator is launched on ------------------------------------------


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
