"""Operators of two rows that belong together by their kind, their size and their order; several that are one there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msdump.analysis.compare.chains import CHAINS
from msdump.analysis.compare.common_tensors import host_shape
from msdump.analysis.compare.merged_operators import merged
from msdump.analysis.compare.trace import Placed, Trace
from msdump.analysis.steps import Slot
from msdump.operators.kinds import dialects_of

_PART = "slice"
# The first operators that differ say what is wrong; an alignment of all behind them costs their square.
_MAX_ALIGNED = 400


def aligned(mine: Sequence[Placed], golden: Sequence[Placed]) -> list[tuple[Placed, Placed]]:
    """Pairs of one kind in one order, as many as possible, those of one size before others; the first of each side
    where there are too many.
    """
    rows, columns = mine[:_MAX_ALIGNED], golden[:_MAX_ALIGNED]
    best = [[0] * (len(columns) + 1) for _ in range(len(rows) + 1)]
    for i in range(len(rows) - 1, -1, -1):
        for j in range(len(columns) - 1, -1, -1):
            together = _score(rows[i], columns[j])
            best[i][j] = max(best[i + 1][j], best[i][j + 1], together and together + best[i + 1][j + 1])
    pairs = []
    i = j = 0
    while i < len(rows) and j < len(columns):
        together = _score(rows[i], columns[j])
        if together and best[i][j] == together + best[i + 1][j + 1]:
            pairs.append((rows[i], columns[j]))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def is_another_part(own: Placed, other: Placed) -> bool:
    """Whether they take parts of other sizes, by operators that have other names in one framework: what `select` takes
    is never what a step of `slice` over all of them is.
    """
    types = own.operator.op_type, other.operator.op_type
    is_one_framework = not dialects_of(types[0]).isdisjoint(dialects_of(types[1]))
    return own.kind == _PART and is_one_framework and types[0] != types[1] and not is_one_size(own, other)


def _is_of_numbers(placed: Placed) -> bool:
    """Whether it reads and makes single numbers, as powers of Adam's betas are computed."""
    return all(figures.size == 1 for _, figures in (*placed.inputs, *placed.outputs))


def _score(own: Placed, other: Placed) -> int:
    if own.kind != other.kind or is_another_part(own, other):
        return 0
    if not is_one_size(own, other):
        return 0 if _is_of_numbers(own) != _is_of_numbers(other) else 1
    shapes = [tuple(host_shape(tensor) for tensor in placed.operator.outputs.values())[:1] for placed in (own, other)]
    return 4 if shapes[0] == shapes[1] else 3


def is_one_size(own: Placed, other: Placed) -> bool:
    return own.result is not None and other.result is not None and own.result.size == other.result.size


def may_be_of_one_size(own: Placed, other: Placed) -> bool:
    """Whether two results have as many elements, as far as they were dumped."""
    return own.result is None or other.result is None or own.result.size == other.result.size


def chained(side: Trace, row: Sequence[Placed], wanted: Mapping[str, int]) -> list[Placed]:
    """The row with chains of kinds that the other side has more of as one operator, the longest chains first; where one
    of the chain has that kind itself, those whose other kinds the other side has less of.
    """
    left = list(row)
    for chain in sorted(CHAINS, key=lambda one: -len(one.parts)):
        missing = wanted.get(chain.kind, 0)
        if chain.kind in chain.parts:
            missing = min(-wanted.get(kind, 0) for kind in chain.parts if kind != chain.kind)
        while missing > 0:
            links = next(
                (found for start in range(len(left)) if (found := _links(left, start, chain.parts)) is not None), None
            )
            if links is None:
                break
            parts = [left[index] for index, _ in links]
            whole = side.placed(merged([(left[index].operator, slot) for index, slot in links]))
            last = left.index(parts[-1])
            left[last] = whole
            gone = {id(part) for part in parts}
            left = [placed for placed in left if id(placed) not in gone]
            missing -= 1
    return left


def _links(row: Sequence[Placed], start: int, kinds: Sequence[str]) -> list[tuple[int, Slot | None]] | None:
    """Places of a chain, and the slot by which each one reads the one before."""
    if row[start].kind != kinds[0] or row[start].operator.parts:
        return None
    links: list[tuple[int, Slot | None]] = [(start, None)]
    for kind in kinds[1:]:
        made = {figures.value for _, figures in row[links[-1][0]].outputs[:1]}
        step = next(
            (
                (index, slot)
                for index in range(links[-1][0] + 1, len(row))
                if row[index].kind == kind and not row[index].operator.parts
                for slot, figures in row[index].inputs
                if figures.value in made
            ),
            None,
        )
        if step is None:
            return None
        links.append(step)
    return links
