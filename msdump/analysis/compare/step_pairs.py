"""Which steps of two dumps belong together: by rank, graph and iteration."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence

from msdump.analysis.compare.pairing import is_gathered, written_name
from msdump.analysis.steps import Step


def pair_steps(mine: Sequence[Step], golden: Sequence[Step]) -> list[tuple[Step, Step]]:
    """Steps that belong together, in mine's order: by rank, graph and iteration; graph ids may differ when a rank has
    one graph per iteration, and where a process numbers all that it compiles: their operators identify graphs then;
    two single steps always belong together, and so do two single ranks."""
    if len(mine) == 1 and len(golden) == 1:
        return [(mine[0], golden[0])]
    ranks = [{step.key.rank_id for step in steps} for steps in (mine, golden)]
    if ranks[0] != ranks[1] and len(ranks[0]) == len(ranks[1]) == 1:
        (rank_id,) = ranks[0]
        renamed = [dataclasses.replace(step, key=step.key._replace(rank_id=rank_id)) for step in golden]
        by_id = {id(new): step for new, step in zip(renamed, golden, strict=True)}
        return [(left, by_id[id(right)]) for left, right in _pair_steps_of_ranks(mine, renamed)]
    return _pair_steps_of_ranks(mine, golden)


def _pair_steps_of_ranks(mine: Sequence[Step], golden: Sequence[Step]) -> list[tuple[Step, Step]]:
    """Steps that belong together where equal ranks do."""
    by_key = {step.key: step for step in golden}
    counterpart = _graphs_by_operators(mine, golden)
    keys = [(step, step.key._replace(graph_id=counterpart.get(_graph(step), step.key.graph_id))) for step in mine]
    pairs = [(step, by_key[key]) for step, key in keys if key in by_key]
    if not pairs:
        pairs = _joined(mine, golden, lambda step: (step.key.rank_id, step.key.iteration))
    return pairs or _joined(mine, golden, lambda step: step.key.iteration)


def _graph(step: Step) -> tuple[int | None, int | None]:
    return step.key.rank_id, step.key.graph_id


def _graphs_by_operators(
    mine: Sequence[Step], golden: Sequence[Step]
) -> dict[tuple[int | None, int | None], int | None]:
    """(rank, graph id) of mine -> id of the golden graph that shares most operators with it, each taken once.

    Empty except for graphs whose steps are identified by time. Among equal graphs, those with the same id are paired,
    then those with the same index among the graphs of their process.
    """
    # A compiler's operators have types of their own.
    has_types = not any(is_gathered(steps) for steps in (mine, golden))
    sides = [_operators_by_graph(steps, has_types) for steps in (mine, golden)]
    orders = [_indices(side) for side in sides]
    candidates = []
    for my_graph, names in sides[0].items():
        for golden_graph, others in sides[1].items():
            if my_graph[0] == golden_graph[0] and names & others:
                likeness = len(names & others) / len(names | others)
                candidates.append(
                    (
                        -likeness,
                        my_graph != golden_graph,
                        abs(orders[0][my_graph] - orders[1][golden_graph]),
                        my_graph,
                        golden_graph,
                    )
                )
    counterparts: dict[tuple[int | None, int | None], int | None] = {}
    used = set()
    for *_, my_graph, golden_graph in sorted(candidates):
        if my_graph not in counterparts and golden_graph not in used:
            counterparts[my_graph] = golden_graph[1]
            used.add(golden_graph)
    # A graph without a counterpart must not meet another one that happens to have its number.
    return counterparts if not counterparts else {side: counterparts.get(side, -1) for side in sides[0]}


def _operators_by_graph(
    steps: Sequence[Step], has_types: bool
) -> dict[tuple[int | None, int | None], frozenset[tuple[str, str]]]:
    """Names of the operators of each graph, as its first step has them, and their types unless those say nothing."""
    graphs: dict[tuple[int | None, int | None], frozenset[tuple[str, str]]] = {}
    for step in steps:
        if step.time_us is not None and _graph(step) not in graphs:
            graphs[_graph(step)] = frozenset(
                (name, operator.op_type if has_types else "")
                for operator in step.operators
                if (name := written_name(operator)) is not None
            )
    return graphs


def _indices(graphs: Iterable[tuple[int | None, int | None]]) -> dict[tuple[int | None, int | None], int]:
    """Place of each graph among those of its process."""
    counts: dict[int | None, int] = defaultdict(int)
    indices = {}
    for graph in graphs:
        indices[graph] = counts[graph[0]]
        counts[graph[0]] += 1
    return indices


def _joined(mine: Sequence[Step], golden: Sequence[Step], key: Callable[[Step], Hashable]) -> list[tuple[Step, Step]]:
    """Steps with equal keys where each key is there once on either side."""
    tables: list[dict[Hashable, Step]] = []
    for steps in (mine, golden):
        table = {key(step): step for step in steps}
        if len(table) != len(steps):
            return []
        tables.append(table)
    return [(step, tables[1][name]) for name, step in tables[0].items() if name in tables[1]]
