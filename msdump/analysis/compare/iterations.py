"""Which iterations of two runs belong together, and what one iteration leaves to the next."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msdump.analysis.compare.trace import Look, Trace
from msdump.analysis.compare.values import Figures, Matches, Value, figures_of
from msdump.analysis.distance.bounds import coarser
from msdump.analysis.steps import Step, as_they_ran
from msdump.formats.dump_tensor import DumpedTensor

# Iterations that are looked at where the two sides count them otherwise.
_MAX_ITERATIONS = 64


def iterations_of(
    mine: Sequence[Step], golden: Sequence[Step], looks: tuple[Look, Look] = (figures_of, figures_of)
) -> list[tuple[list[Step], list[Step]]]:
    """Steps of one iteration of one rank on both sides: by number where both have it, else in their order; by what they
    compute where one side counts more of them than the other, as a gradient and an update that are two calls do.
    """
    sides = [_by_iteration(side) for side in (mine, golden)]
    pairs: list[tuple[list[Step], list[Step]]] = []
    one_rank = all(len(ranks) == 1 for ranks in sides)
    for index, (rank, own) in enumerate(sides[0].items()):
        others = list(sides[1].values())[index] if one_rank else sides[1].get(rank, {})
        if len(own) != len(others) and 0 < max(len(own), len(others)) <= _MAX_ITERATIONS:
            joined = _joined_by_values(list(own.values()), list(others.values()), looks)
            if joined:
                pairs += joined
                continue
        keys: Iterable[tuple[int, int]] = zip(own, others, strict=False)
        if set(own) & set(others):
            keys = ((number, number) for number in own if number in others)
        pairs += [(own[left], others[right]) for left, right in keys]
    return pairs


def coarse_paths(steps: Sequence[Step]) -> dict[int, str]:
    """The dtype of the path of each tensor, by id, where that is coarser than its own; of buffers that an operator has
    written without showing it, as the running statistics of a batch norm, the coarsest dtype of the run.
    """
    found: dict[int, str] = {}
    for iterations in _by_iteration(steps).values():
        trace = None
        initial: set[Value] = set()
        for own in iterations.values():
            is_first, trace = trace is None, Trace(own, trace)
            found |= trace.coarse
            reads = [(placed, figures) for placed in trace.row for _, figures in placed.inputs]
            if is_first:
                initial = {figures.value for placed, figures in reads if placed.part == "forward"}
            dtype = functools.reduce(coarser, trace.coarse.values(), "")
            shown = _shown(own)
            written = {one for one in shown if one not in initial | trace.makers.keys() | trace.left.keys()}
            found |= {id(tensor): dtype for value in written for tensor in shown[value] if dtype}
            found |= {id(figures.tensor): dtype for _, figures in reads if dtype and figures.value in written}
    return found


def _shown(steps: Iterable[Step]) -> Mapping[Value, list[DumpedTensor]]:
    """The parameters and buffers that steps show, by value."""
    shown: dict[Value, list[DumpedTensor]] = {}
    for operator in (one for step in steps for one in step.operators if one.is_parameter):
        for tensor in operator.outputs.values():
            figures = figures_of(tensor)
            if figures is not None and figures.is_float and not figures.is_plain:
                shown.setdefault(figures.value, []).append(tensor)
    return shown


def _by_iteration(steps: Sequence[Step]) -> dict[int, dict[int, list[Step]]]:
    ranks: dict[int, dict[int, list[Step]]] = {}
    for step in as_they_ran(steps):
        ranks.setdefault(step.key.rank_id or 0, {}).setdefault(step.key.iteration or 0, []).append(step)
    return {rank: dict(sorted(iterations.items())) for rank, iterations in ranks.items()}


def _joined_by_values(
    mine: Sequence[list[Step]], golden: Sequence[list[Step]], looks: tuple[Look, Look]
) -> list[tuple[list[Step], list[Step]]]:
    """Iterations of which several on one side are one on the other; [] where each has one that it shares most with, or
    where that leaves one out: weights that an update has left as they were make two iterations alike.

    Each iteration of the side with more of them goes to the one on the other side with which it has most results in
    common, in order.
    """
    is_mine_longer = len(mine) > len(golden)
    longer, shorter = (mine, golden) if is_mine_longer else (golden, mine)
    look, other_look = looks if is_mine_longer else looks[::-1]
    matches = [Matches(_results(steps, other_look)) for steps in shorter]
    shared = [[sum(bool(one.of(figures)) for figures in _results(steps, look)) for one in matches] for steps in longer]
    # The best way to give each of the longer side to one of the shorter, in order; later ones may begin anew.
    best = [[0] * len(shorter) for _ in longer]
    for i in range(len(longer) - 1, -1, -1):
        for j in range(len(shorter)):
            best[i][j] = shared[i][j] + (max(best[i + 1][j:]) if i + 1 < len(longer) else 0)
    groups: dict[int, list[Step]] = {}
    start = last = 0
    for i in range(len(longer)):
        start = max(range(start, len(shorter)), key=lambda j, row=best[i]: row[j])  # type: ignore[misc]
        if shared[i][start]:
            groups.setdefault(start, []).extend(longer[i])
            last = i
    groups |= _in_order(groups, longer[last + 1 :], len(shorter))
    counts = {j: len({step.key.iteration for step in steps}) for j, steps in groups.items()}
    if max(counts.values(), default=1) < 2 or len(groups) < len(shorter):
        return []
    pairs = [(steps, shorter[j]) for j, steps in groups.items()]
    return pairs if is_mine_longer else [(own, other) for other, own in pairs]


def _in_order(groups: Mapping[int, list[Step]], rest: Sequence[list[Step]], count: int) -> dict[int, list[Step]]:
    """Groups of the iterations after the last one that shares anything, as runs that have gone apart have: as many in
    each as there are left of the other side, where that comes out even.
    """
    matched = len(groups)
    left = count - matched
    if not matched or set(groups) != set(range(matched)) or left <= 0 or len(rest) % left:
        return {}
    size = len(rest) // left
    return {matched + at: [step for one in rest[at * size : (at + 1) * size] for step in one] for at in range(left)}


def _results(steps: Iterable[Step], look: Look) -> Iterator[Figures]:
    for step in steps:
        for operator in step.operators:
            for tensor in () if operator.is_parameter else operator.outputs.values():
                figures = look(tensor)
                if figures is not None and not figures.is_plain:
                    yield figures
