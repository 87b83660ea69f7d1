"""Where two runs of one iteration begin to differ: operators that read nothing but what both sides have, or what came
in from outside, and make what the other side has not."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from msdump.analysis.compare.confirm import Confirmation
from msdump.analysis.compare.pairing import host_shape
from msdump.analysis.compare.trace import Placed
from msdump.analysis.compare.values import Figures, Value
from msdump.analysis.steps import Operator, Slot, StepKey
from msdump.formats.dump_tensor import DumpedTensor

_PARTS = ("forward", "backward", "optimizer")


@dataclass(frozen=True, slots=True)
class Fault:
    """An operator of one side with which a difference begins.

    side      "mine" or "golden"
    order     part of the training step, place among mine's operators, and distance behind it
    paired    mine's operator of the pair that it is in, or is a part of; None where it has no counterpart
    facing    of an operator of mine without a counterpart: what golden makes of the same, and in which step
    ends      mine's operators of the pairs that one without a counterpart leads to
    starts    numbers other than 1 that the backward pass of mine is given
    results   of a computation that both sides make in their own form: what it ends in, in mine and in golden
    """

    side: str
    step: StepKey
    operator: Operator
    order: tuple[int, int, float]
    paired: Operator | None = None
    facing: tuple[StepKey, Operator] | None = None
    ends: tuple[Operator, ...] = ()
    results: tuple[DumpedTensor, DumpedTensor] | None = None
    starts: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Met:
    """A pair of operators or chains, and the slots of both whose tensors were paired."""

    mine: Placed
    golden: Placed
    mine_slots: Collection[Slot]
    golden_slots: Collection[Slot]


def faults_of(confirmed: Confirmation, pairs: Sequence[Met], forgiven: Collection[int]) -> tuple[Fault, ...]:
    """Faults of both sides in the order in which mine came to them.

    A pair is one where both of it begin a difference: what one side alone computes before them comes first, unless it
    leads to an operand that the other one of the pair has not, as parts of what is one operator there do.

    forgiven   ids of operators that need no counterpart
    """
    found: list[tuple[Fault, set[Value], set[int]]] = []
    covered: set[int] = set()
    places = _Order(confirmed)
    pair_of = {
        id(part): number
        for number, pair in enumerate(pairs)
        for placed in (pair.mine, pair.golden)
        for part in (placed.operator, *placed.operator.parts)
    }
    for pair in pairs:
        sides = ((True, pair.mine, pair.mine_slots), (False, pair.golden, pair.golden_slots))
        if not all(_is_open(confirmed, placed, is_mine) and confirmed.begins(placed, is_mine, slots)
                   for is_mine, placed, slots in sides):  # fmt: skip
            continue
        leads = [
            (is_mine, placed.part, confirmed.open_lead(placed, is_mine, {at for at, _ in placed.inputs} - set(slots)))
            for is_mine, placed, slots in sides
        ]
        if any(_is_from_before(confirmed, *lead) for lead in leads):
            continue  # a gradient of what differs already
        fault = Fault("mine", pair.mine.step.key, pair.mine.operator, places.of(pair.mine, True), pair.mine.operator)
        fault = _turned(confirmed, pair, fault) or fault
        found.append((fault, set(), _next_pairs(confirmed, pair.mine, True, pair_of)))
        covered |= {one for _, _, lead in leads for one in lead}
    beginnings = {is_mine: list(_beginnings(confirmed, is_mine)) for is_mine in (True, False)}
    for is_mine, name in ((True, "mine"), (False, "golden")):
        for placed in _without_idle(confirmed, beginnings, is_mine, pair_of):
            operator = placed.operator
            if id(operator) in covered or id(operator) in pair_of:
                continue
            if id(operator) in forgiven and placed.inputs and not placed.is_random:
                continue
            if placed.is_mover and placed.inputs:
                continue  # it computes nothing: what does so with its result shows whether that is in order
            read, ends = _reads(confirmed, placed, is_mine), _next_pairs(confirmed, placed, is_mine, pair_of)
            next_ones = tuple(pairs[number].mine.operator for number in sorted(ends))
            fault = Fault(name, placed.step.key, operator, places.of(placed, is_mine), ends=next_ones)
            index = next((at for at, one in enumerate(found) if not is_mine and _is_met(*one, fault, read, ends)), None)
            if index is None:
                found.append((replace(fault, results=_losses(confirmed, placed, is_mine)), read, ends))
            elif found[index][0].paired is None:
                mine, own, own_ends = found[index]
                if mine.facing is None:
                    mine = replace(mine, facing=(fault.step, operator), results=_results(confirmed, mine, placed))
                found[index] = mine, own, own_ends
    starts = tuple({
        abs(figures.largest)
        for placed in confirmed.sides[0].row
        if placed.part == "backward"
        for _, figures in placed.inputs
        if figures.size == 1 and abs(figures.largest) != 1
    })  # fmt: skip
    ordered = sorted((fault for fault, _, _ in found), key=lambda fault: fault.order)
    return tuple(replace(fault, starts=starts) if fault.order[0] == 1 else fault for fault in ordered)


def _is_from_before(confirmed: Confirmation, is_mine: bool, part: str, lead: set[int]) -> bool:
    """Whether some operators run in an earlier part of a training step."""
    side = confirmed.side(is_mine)
    return any(_PARTS.index(side.row[side.place[one]].part) < _PARTS.index(part) for one in lead)


def _turned(confirmed: Confirmation, pair: Met, fault: Fault) -> Fault | None:
    """The operator of one side alone that brings the elements of an operand into another order, where that is what a
    pair of operators of one kind goes wrong for.
    """
    read = {slot: figures for slot, figures in pair.golden.inputs if slot in pair.golden_slots}
    for slot, figures in pair.mine.inputs:
        golden = next((one for one in read.values() if one.value in confirmed.partners[figures.value]), None)
        likeness = None if golden is None else confirmed.matches.likeness(figures, golden)
        if golden is None or likeness is None or not likeness.axes or slot not in pair.mine_slots:
            continue
        if host_shape(figures.tensor) != host_shape(golden.tensor):
            continue  # a weight, whose operators read it in their own layouts
        for is_mine, placed, start, other in (
            (True, pair.mine, figures, golden),
            (False, pair.golden, golden, figures),
        ):
            mover = _first_turned(confirmed, placed, start, other, is_mine)
            if mover is not None:
                name = "mine" if is_mine else "golden"
                return Fault(name, mover.step.key, mover.operator, fault.order, ends=(pair.mine.operator,))
    return None


def _first_turned(
    confirmed: Confirmation, reader: Placed, figures: Figures, other: Figures, is_mine: bool
) -> Placed | None:
    """The operator before a reader whose result agrees with another value in another order alone, and whose input does
    so as it is.
    """
    side = confirmed.side(is_mine)
    place = side.place[id((reader.operator.parts or (reader.operator,))[0])]
    maker = side.maker_before(figures.value, place)
    while maker is not None and side.row[maker].is_mover and side.row[maker].inputs:
        source = side.row[maker].inputs[0][1]
        own, golden = (source, other) if is_mine else (other, source)
        likeness = confirmed.matches.likeness(own, golden) if own.size == golden.size else None
        if likeness is not None and not likeness.axes:
            return side.row[maker]
        maker = side.maker_before(source.value, maker)
    return None


def _results(confirmed: Confirmation, mine: Fault, golden: Placed) -> tuple[DumpedTensor, DumpedTensor] | None:
    """What two forms of one computation end in, where that is one tensor on each side and they have one size."""
    trace = confirmed.sides[0]
    own = _last_results(confirmed, trace.row[trace.place[id(mine.operator)]], True)
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


def _next_pairs(confirmed: Confirmation, placed: Placed, is_mine: bool, pair_of: Mapping[int, int]) -> set[int]:
    """Numbers of the pairs that the results of an operator come to first."""
    side = confirmed.side(is_mine)
    found: set[int] = set()
    waiting, seen = [side.place[id((placed.operator.parts or (placed.operator,))[-1])]], set[int]()
    while waiting:
        for reader in side.readers_of(waiting.pop()):
            if reader in seen:
                continue
            seen.add(reader)
            number = pair_of.get(id(side.row[reader].operator))
            if number is None:
                waiting.append(reader)
            else:
                found.add(number)
    return found


def _is_open(confirmed: Confirmation, placed: Placed, is_mine: bool) -> bool:
    """Whether it, or the last one of a chain, makes what the other side has not."""
    operator = placed.operator.parts[-1] if placed.operator.parts else placed.operator
    return confirmed.right[not is_mine][confirmed.side(is_mine).place[id(operator)]] is False


def _is_met(mine: Fault, own: set[Value], own_ends: set[int], golden: Fault, read: set[Value], ends: set[int]) -> bool:
    """Whether two operators are parts of one computation in two forms: both make something of the same and neither has
    a counterpart, or both lead to the same pair.
    """
    if mine.side != "mine" or mine.order[0] != golden.order[0]:
        return False
    return bool(own_ends & ends) or bool(own & read)


def _beginnings(confirmed: Confirmation, is_mine: bool) -> Iterator[Placed]:
    for placed, right in zip(confirmed.side(is_mine).row, confirmed.right[not is_mine], strict=True):
        if right is False and confirmed.begins(placed, is_mine):
            yield placed


def _without_idle(
    confirmed: Confirmation, beginnings: Mapping[bool, Collection[Placed]], is_mine: bool, pair_of: Mapping[int, int]
) -> Iterator[Placed]:
    """The beginnings but for those that nothing follows from: a norm that is printed, a count, where the other side
    makes nothing else of the same.
    """
    read_there = {value for placed in beginnings[not is_mine] for value in _reads(confirmed, placed, not is_mine)}
    has_open = any(
        not right and placed.telling is not None and not placed.is_mover
        for placed, right in zip(confirmed.side(not is_mine).row, confirmed.right[is_mine], strict=True)
    )
    for placed in beginnings[is_mine]:
        if (
            not _is_idle(confirmed, placed, is_mine, has_open)
            or not read_there.isdisjoint(_reads(confirmed, placed, is_mine))
            or _next_pairs(confirmed, placed, is_mine, pair_of)
        ):
            yield placed


def _reads(confirmed: Confirmation, placed: Placed, is_mine: bool) -> set[Value]:
    """The values of golden that an operator reads."""
    if not is_mine:
        return {figures.value for _, figures in placed.inputs if not figures.is_plain}
    return {value for _, figures in placed.inputs for value in confirmed.partners[figures.value]}


def _is_idle(confirmed: Confirmation, placed: Placed, is_mine: bool, has_open: bool) -> bool:
    """Whether all that an operator leads to has no reader, and is one number where the other side has something left
    that it could be.
    """
    side = confirmed.side(is_mine)
    right = confirmed.right[not is_mine]
    if placed.is_random and not any(side.readers[figures.value] for _, figures in placed.outputs):
        return True  # memory that is filled, and filled once more before anything reads it
    waiting, seen = [side.place[id(placed.operator)]], set[int]()
    while waiting:
        index = waiting.pop()
        if index in seen:
            continue
        seen.add(index)
        readers = side.readers_of(index)
        if any(right[reader] for reader in readers) or _loss_read(confirmed, side.row[index], is_mine) is not None:
            return False
        result = side.row[index].result
        if not readers and has_open and (result is None or result.size != 1):
            return False
        waiting += readers
    return True


def _loss_read(confirmed: Confirmation, placed: Placed, is_mine: bool) -> Figures | None:
    """The number with which the forward pass of the other side ends, where an operator goes on with it."""
    other = confirmed.side(not is_mine)
    for _, figures in placed.inputs:
        for value in confirmed.counterparts(figures, is_mine):
            maker = other.makers.get(value)
            if figures.size == 1 and not other.readers[value] and maker is not None:
                return other.row[maker].result
    return None


def _losses(confirmed: Confirmation, placed: Placed, is_mine: bool) -> tuple[DumpedTensor, DumpedTensor] | None:
    """The losses of both sides, where one of them goes on from that of the other with what an operator leads to."""
    side = confirmed.side(is_mine)
    ends = _last_results(confirmed, placed, is_mine)
    if placed.part != "forward" or len(ends) != 1 or ends[0].size != 1:
        return None
    maker = side.makers[ends[0].value]
    before = range(side.place[id(placed.operator)], maker + 1)
    found = (_loss_read(confirmed, side.row[index], is_mine) for index in before)
    other = next((one for one in found if one is not None), None)
    if other is None:
        return None
    return (ends[0].tensor, other.tensor) if is_mine else (other.tensor, ends[0].tensor)


class _Order:
    """Where mine has come to when an operator of either side runs: after which of its operators whose result golden has
    exactly once, and how many operators later.
    """

    def __init__(self, confirmed: Confirmation) -> None:
        self._confirmed = confirmed
        self._anchors = {is_mine: list(self._anchored(is_mine)) for is_mine in (True, False)}

    def of(self, placed: Placed, is_mine: bool) -> tuple[int, int, float]:
        """Part of the step, place of mine, and distance from there."""
        side = self._confirmed.side(is_mine)
        index = side.place[id(placed.operator.parts[-1] if placed.operator.parts else placed.operator)]
        place, anchor = self._anchors[is_mine][index]
        order = (place, float(index - anchor))
        if not is_mine:
            order = max(order, (max(map(self._read_place, placed.inputs), default=-1), 0.5))
        return (_PARTS.index(placed.part), *order)

    def _read_place(self, read: tuple[Slot, Figures]) -> int:
        values = () if read[1].is_plain else self._confirmed.counterparts(read[1], False)
        return self._confirmed.sides[0].makers.get(values[0], -1) if len(values) == 1 else -1

    def _anchored(self, is_mine: bool) -> Iterator[tuple[int, int]]:
        """For each operator of a side: the place of mine, and that of the side, of the last one before it whose result
        both have.
        """
        mine = self._confirmed.sides[0]
        anchor = (-1, -1)
        for index, placed in enumerate(self._confirmed.side(is_mine).row):
            yield anchor
            told = placed.telling
            values = () if told is None else self._confirmed.counterparts(told, is_mine)
            if told is not None and len(values) == 1:
                place = index if is_mine else mine.makers.get(values[0])
                if place is not None and place >= anchor[0]:
                    anchor = place, index
