"""What both sides write in their own form where a difference begins: values do not tell which of it is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msdump.analysis.compare.confirm import Confirmation
from msdump.analysis.compare.operands import Met
from msdump.analysis.compare.trace import Placed, Trace
from msdump.analysis.compare.values import Figures
from msdump.analysis.steps import Operator, StepKey
from msdump.formats.dump_tensor import DumpedTensor

Form: TypeAlias = "tuple[tuple[StepKey, Operator], ...]"


def forms_of(
    confirmed: Confirmation,
    pairs: Sequence[Met],
    begin: Operator,
    is_mine: bool,
    facing: Operator | None,
    goes_on: Operator | None,
) -> tuple[tuple[Form, Form], Operator | None]:
    """The operators of mine and of golden from where a difference begins up to the next pair, and mine's operator of
    that pair where no other value tells it.

    begin    without a counterpart; what is made of it, masks and whole numbers too
    facing   of an operator of mine: golden's in its place
    goes_on  of an operator of golden: mine's that goes on without it; what leads there is mine's form
    """
    pair_of = {
        id(part): pair
        for pair in pairs
        for placed in (pair.mine, pair.golden)
        for part in (placed.operator, *placed.operator.parts)
    }
    own = _following(confirmed, pair_of, begin, is_mine)
    if is_mine:
        return (own, () if facing is None else _following(confirmed, pair_of, facing, False)), None
    met = None
    if goes_on is None:
        met = goes_on = _first_met(confirmed.sides[1], pair_of, begin)
    return (() if goes_on is None else _leading(confirmed, goes_on), own), met


def place_in(side: Trace, operator: Operator) -> int:
    """Where an operator, or the last one of a chain, stands in its row."""
    return side.place[id((operator.parts or (operator,))[-1])]


def _following(confirmed: Confirmation, pair_of: Mapping[int, Met], start: Operator, is_mine: bool) -> Form:
    side, right = confirmed.side(is_mine), confirmed.right[not is_mine]
    waiting, found = [place_in(side, start)], set[int]()
    part = side.row[waiting[0]].part
    while waiting:
        place = waiting.pop()
        placed = side.row[place]
        is_right = right[place] and placed.telling is not None
        if place in found or placed.part != part or is_right or id(placed.operator) in pair_of:
            continue
        found.add(place)
        waiting += _all_readers(side, place)
    return _form(side, found)


def _leading(confirmed: Confirmation, end: Operator) -> Form:
    mine, right = confirmed.sides[0], confirmed.right[False]
    waiting, found = [place_in(mine, end)], set[int]()
    part = mine.row[waiting[0]].part
    while waiting:
        place = waiting.pop()
        if place in found or mine.row[place].part != part or right[place]:
            continue
        found.add(place)
        makers = (mine.maker_before(figures.value, place) for _, figures in mine.row[place].inputs)
        waiting += [maker for maker in makers if maker is not None]
    return _form(mine, found)


def _first_met(golden: Trace, pair_of: Mapping[int, Met], start: Operator) -> Operator | None:
    waiting, seen = [place_in(golden, start)], set[int]()
    while waiting:
        for reader in sorted(_all_readers(golden, waiting.pop(0)) - seen):
            seen.add(reader)
            pair = pair_of.get(id(golden.row[reader].operator))
            if pair is not None:
                return pair.mine.operator
            waiting.append(reader)
    return None


def _form(side: Trace, places: set[int]) -> Form:
    return tuple((side.row[place].step.key, side.row[place].operator) for place in sorted(places))


def _all_readers(side: Trace, place: int) -> set[int]:
    """Places of the later operators that read what one makes, masks and whole numbers too."""
    plain = (figures for _, figures in side.row[place].outputs if figures.is_plain and figures.size > 1)
    later = (reader for figures in plain for reader in side.readers[figures.value] if reader > place)
    return {*side.readers_of(place), *later}


def results_of(confirmed: Confirmation, mine: Operator, golden: Placed) -> tuple[DumpedTensor, DumpedTensor] | None:
    """What two forms of one computation end in, where that is one tensor on each side and they have one size."""
    trace = confirmed.sides[0]
    own = _last_results(confirmed, trace.row[trace.place[id(mine)]], True)
    other = _last_results(confirmed, golden, False)
    if len(own) != 1 or len(other) != 1 or own[0].size != other[0].size:
        return None
    return own[0].tensor, other[0].tensor


def _last_results(confirmed: Confirmation, placed: Placed, is_mine: bool) -> list[Figures]:
    """Results, of operators that one leads to in its part of the step, which nothing there reads."""
    side, right = confirmed.side(is_mine), confirmed.right[not is_mine]
    waiting, seen, found = [side.place[id(placed.operator)]], set[int](), []
    while waiting:
        index = waiting.pop()
        if index in seen:
            continue
        seen.add(index)
        readers = [reader for reader in side.readers_of(index) if side.row[reader].part == placed.part]
        waiting += readers
        result = side.row[index].telling
        if not readers and result is not None and right[index] is False and not side.row[index].is_mover:
            found.append(result)
    return list({figures.value: figures for figures in found}.values())


def losses_of(confirmed: Confirmation, placed: Placed, is_mine: bool) -> tuple[DumpedTensor, DumpedTensor] | None:
    """The losses of both sides, where one of them goes on from that of the other with what an operator leads to."""
    side = confirmed.side(is_mine)
    ends = _last_results(confirmed, placed, is_mine)
    if placed.part != "forward" or len(ends) != 1 or ends[0].size != 1:
        return None
    maker = side.makers[ends[0].value]
    before = range(side.place[id(placed.operator)], maker + 1)
    found = (loss_read(confirmed, side.row[index], is_mine) for index in before)
    other = next((one for one in found if one is not None), None)
    if other is None:
        return None
    return (ends[0].tensor, other.tensor) if is_mine else (other.tensor, ends[0].tensor)


def loss_read(confirmed: Confirmation, placed: Placed, is_mine: bool) -> Figures | None:
    """The number with which the forward pass of the other side ends, where an operator goes on with it."""
    other = confirmed.side(not is_mine)
    for _, figures in placed.inputs:
        for value in confirmed.counterparts(figures, is_mine):
            maker = other.makers.get(value)
            if figures.size == 1 and not other.readers[value] and maker is not None:
                return other.row[maker].result
    return None
