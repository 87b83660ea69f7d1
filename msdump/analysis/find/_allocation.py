"""Memory that no operator has written: who allocated what a finding reads; and weights that were bad from the start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msdump.analysis.find._health import HealthTable
from msdump.analysis.find._infinity_flow import CAME_IN, UNSET_MEMORY
from msdump.analysis.graph_info import GraphFiles, GraphNode, Origin
from msdump.analysis.steps import Step, StepKey
from msdump.operators.traits import makes_unset, only_moves, unread_inputs


class First(Protocol):
    """What is asked of the first finding."""

    @property
    def step(self) -> StepKey: ...

    @property
    def maker(self) -> object: ...

    @property
    def how(self) -> str: ...

    @property
    def parameter(self) -> str | None: ...


def allocation_of(origin: Origin | None, key: StepKey, graphs: GraphFiles) -> GraphNode | None:
    """The operator that returned memory without writing it, where an input is that memory, handed on or not."""
    seen: set[tuple[int | None, str]] = set()
    waiting = [] if origin is None else [(origin, key)]
    while waiting:
        origin, key = waiting.pop()
        if origin.maker is not None:
            key, name = key._replace(graph_id=origin.maker[0]), origin.maker[1]
        elif origin.slot is not None:
            name = origin.name
        else:
            continue
        graph = graphs.of(key)
        node = None if graph is None else graph.find(name)
        if node is None or (key.graph_id, name) in seen:
            continue
        if makes_unset(node.op_type):
            return node
        seen.add((key.graph_id, name))
        if only_moves(node.op_type):
            unread = unread_inputs(node.op_type, node.input_names)
            inputs = [each for slot, each in enumerate(node.inputs) if slot not in unread and each is not None]
            waiting += [(each, key) for each in reversed(inputs)]
    return None


def bad_from_the_start(found: First, steps: Sequence[Step], health: HealthTable, graphs: GraphFiles) -> tuple[str, ...]:
    """Names of parameters that were not finite when the first step of a rank began.

    found   the first finding: in the step that reads them, or in what ran before it
    steps   of all, in the order in which they ran
    """
    key = found.step
    if key.iteration != 0 or (found.maker is not None and found.how != UNSET_MEMORY):
        return ()
    for step in steps:
        if (step.key.rank_id, step.key.iteration) != (key.rank_id, 0):
            continue
        bad = [
            each.op_name
            for each in step.operators
            if each.is_parameter and any(health.of(tensor).is_bad for tensor in each.outputs.values())
        ]
        if step.key == key and found.parameter in bad and found.how in (CAME_IN, UNSET_MEMORY):
            return (found.parameter,)
        if step.key != key and any(each.is_parameter for each in step.operators):
            # The first one that reads them: what an operator before it has made, or loaded.
            graph = graphs.of(step.key) if bad else None
            read = [origin for node in (() if graph is None else graph.nodes) for origin in node.inputs]
            made = {one.name for one in read if one is not None and one.maker and one.maker[0] == key.graph_id}
            return tuple(name for name in bad if name in made)
    return ()
