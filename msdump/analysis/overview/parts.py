"""Parts of a training step: which of them a graph is, and to which an operator belongs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msdump.analysis.overview.contents import ExportedOperator
from msdump.formats.paths.parse import msprobe_forward

FORWARD, BACKWARD, OPTIMIZER, PARAMETERS, CONSTRUCTION = (
    "forward", "backward", "optimizer", "parameters", "construction",
)  # fmt: skip
PARTS = (FORWARD, BACKWARD, OPTIMIZER, PARAMETERS, CONSTRUCTION)
WHOLE_STEP = "step"  # of a graph that holds several parts
# A graph is of one part when at most one operator in so many belongs to another.
_STRAYS = 10
_Graph = tuple[int | None, int | None]


def graph_parts(operators: Iterable[ExportedOperator]) -> dict[_Graph, str]:
    """The part of a training step that each graph of a rank is: one of PARTS, or WHOLE_STEP for several in one.

    Where the backward pass has a graph of its own, one with operators of an optimizer is the optimizer's: it holds the
    clipping of gradients too, whose names have no optimizer in them.
    Edges: a forward graph that ran in the first iteration alone, where others ran in more, or before a forward graph of
           a lower number, is the construction of the model. A graph of nothing but parameters is "parameters". A graph
           of msprobe holds several parts where the names of its records do.
    """
    stages: dict[_Graph, Counter[str]] = {}
    iterations: dict[_Graph, set[int | None]] = {}
    began: dict[_Graph, int] = {}
    named: set[_Graph] = set()
    for one in operators:
        graph = one.step.rank_id, one.step.graph_id
        times = [time for row in one.tensors if (time := row.tensor.timestamp_us) is not None]
        if times:
            began[graph] = min(began.get(graph, times[0]), *times)
        iterations.setdefault(graph, set()).add(one.step.iteration)
        counts = stages.setdefault(graph, Counter())
        if msprobe_forward(one.operator.label) != one.operator.label:
            named.add(graph)
        if not one.operator.is_parameter:
            counts[_stage(one)] += 1
    first = {rank: min(_numbers(iterations, rank), default=None) for rank, _ in stages}
    longest = {rank: max(len(steps) for (own, _), steps in iterations.items() if own == rank) for rank, _ in stages}
    parts = {}
    for graph, counts in stages.items():
        part = PARAMETERS
        if counts:
            part = WHOLE_STEP if graph in named and len(counts) > 1 else _most(counts)
            others = (count for (rank, _), count in stages.items() if rank == graph[0] and count is not counts)
            if counts[OPTIMIZER] and not counts[BACKWARD] and any(count[BACKWARD] for count in others):
                part = OPTIMIZER
        rank = graph[0]
        is_first_only = longest[rank] > 1 and iterations[graph] == {first[rank]}
        is_early = iterations[graph] == {first[rank]} and _runs_before_a_lower_one(graph, stages, began)
        if part == FORWARD and (is_early or (is_first_only and _has_other(stages, graph))):
            part = CONSTRUCTION
        parts[graph] = part
    return parts


def _numbers(iterations: Mapping[_Graph, set[int | None]], rank: int | None) -> list[int]:
    return [step for (own, _), steps in iterations.items() if own == rank for step in steps if step is not None]


def _most(counts: Counter[str]) -> str:
    """The part of a graph by how many of its operators belong to each."""
    (most, count), total = counts.most_common(1)[0], counts.total()
    is_one = (most != FORWARD and len(counts) < 3) or (total - count) * _STRAYS <= total
    return most if is_one else WHOLE_STEP


def _has_other(stages: Mapping[_Graph, Counter[str]], graph: _Graph) -> bool:
    """Whether another graph of the rank can be the forward part."""
    return any(own[0] == graph[0] and own != graph and counts[FORWARD] for own, counts in stages.items())


def _runs_before_a_lower_one(graph: _Graph, stages: Mapping[_Graph, Counter[str]], began: Mapping[_Graph, int]) -> bool:
    """Whether a forward graph of a lower number began later: programs number what makes the model last."""
    rank, number = graph
    return graph in began and any(
        own in began
        and own[0] == rank
        and (own[1] or 0) < (number or 0)
        and counts[FORWARD]
        and began[own] > began[graph]
        for own, counts in stages.items()
    )


def _stage(one: ExportedOperator) -> str:
    label = one.operator.label
    # Records of msprobe say it in their names: Torch.relu.0.backward.
    return BACKWARD if msprobe_forward(label) != label else one.operator.stage


def part_of(one: ExportedOperator, graphs: Mapping[_Graph, str]) -> str:
    if one.operator.is_parameter:
        return PARAMETERS
    part = graphs[one.step.rank_id, one.step.graph_id]
    return _stage(one) if part == WHOLE_STEP else part
