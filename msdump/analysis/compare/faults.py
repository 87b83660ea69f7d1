"""Where two runs of one iteration begin to differ: operators that read nothing but what both sides have, or what came
in from outside, and make what the other side has not."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from msdump.analysis.compare.confirm import Confirmation
from msdump.analysis.compare.trace import Placed
from msdump.analysis.compare.values import Value
from msdump.analysis.steps import Operator, Slot, StepKey

_PARTS = ("forward", "backward", "optimizer")


@dataclass(frozen=True, slots=True)
class Fault:
    """An operator of one side with which a difference begins.

    side      "mine" or "golden"
    order     part of the training step, and place among mine's operators
    paired    mine's operator of the pair that it is in, or is a part of; None where it has no counterpart
    facing    of an operator of mine without a counterpart: what golden makes of the same, and in which step
    ends      mine's operators of the pairs that one without a counterpart leads to
    """

    side: str
    step: StepKey
    operator: Operator
    order: tuple[int, float]
    paired: Operator | None = None
    facing: tuple[StepKey, Operator] | None = None
    ends: tuple[Operator, ...] = ()


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
    pair_of = {
        id(part): number
        for number, pair in enumerate(pairs)
        for placed in (pair.mine, pair.golden)
        for part in (placed.operator, *placed.operator.parts)
    }
    for pair in pairs:
        sides = ((True, pair.mine, pair.mine_slots), (False, pair.golden, pair.golden_slots))
        if all(_is_open(confirmed, placed, is_mine) and confirmed.begins(placed, is_mine, slots)
               for is_mine, placed, slots in sides):  # fmt: skip
            order = _order(confirmed, pair.mine, True)
            fault = Fault("mine", pair.mine.step.key, pair.mine.operator, order, pair.mine.operator)
            found.append((fault, set(), _next_pairs(confirmed, pair.mine, True, pair_of)))
            for is_mine, placed, slots in sides:
                covered |= confirmed.open_lead(placed, is_mine, {slot for slot, _ in placed.inputs} - set(slots))
    beginnings = {is_mine: list(_beginnings(confirmed, is_mine)) for is_mine in (True, False)}
    for is_mine, name in ((True, "mine"), (False, "golden")):
        for placed in _without_idle(confirmed, beginnings, is_mine):
            operator = placed.operator
            if id(operator) in covered or id(operator) in pair_of:
                continue
            if id(operator) in forgiven and placed.inputs and not placed.is_random:
                continue
            read, ends = _reads(confirmed, placed, is_mine), _next_pairs(confirmed, placed, is_mine, pair_of)
            next_ones = tuple(pairs[number].mine.operator for number in sorted(ends))
            fault = Fault(name, placed.step.key, operator, _order(confirmed, placed, is_mine), ends=next_ones)
            index = next(
                (at for at, mine in enumerate(found) if not is_mine and _is_met(*mine, fault, read, ends)), None
            )
            if index is None:
                found.append((fault, read, ends))
            elif found[index][0].paired is None:
                mine, *rest = found[index]
                found[index] = replace(mine, facing=mine.facing or (fault.step, operator)), rest[0], rest[1]
    return tuple(sorted((fault for fault, _, _ in found), key=lambda fault: fault.order))


def _next_pairs(confirmed: Confirmation, placed: Placed, is_mine: bool, pair_of: Mapping[int, int]) -> set[int]:
    """Numbers of the pairs that the results of an operator come to first."""
    side = confirmed.side(is_mine)
    found: set[int] = set()
    waiting, seen = [side.place[id((placed.operator.parts or (placed.operator,))[-1])]], set[int]()
    while waiting:
        index = waiting.pop()
        for _, figures in side.row[index].outputs:
            for reader in () if figures.is_plain else side.readers[figures.value]:
                if reader <= index or reader in seen:
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


def _order(confirmed: Confirmation, placed: Placed, is_mine: bool) -> tuple[int, float]:
    return _PARTS.index(placed.part), _place(confirmed, placed, is_mine)


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
    confirmed: Confirmation, beginnings: Mapping[bool, Collection[Placed]], is_mine: bool
) -> Iterator[Placed]:
    """The beginnings but for those that nothing follows from: a norm that is printed, a count, where the other side
    makes nothing else of the same.
    """
    read_there = {value for placed in beginnings[not is_mine] for value in _reads(confirmed, placed, not is_mine)}
    has_open = any(
        right is False and not placed.is_mover
        for placed, right in zip(confirmed.side(not is_mine).row, confirmed.right[is_mine], strict=True)
    )
    for placed in beginnings[is_mine]:
        if not _is_idle(confirmed, placed, is_mine, has_open) or not read_there.isdisjoint(
            _reads(confirmed, placed, is_mine)
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
        readers = [
            reader
            for _, figures in side.row[index].outputs
            if not figures.is_plain
            for reader in side.readers[figures.value]
            if reader > index
        ]
        if any(right[reader] for reader in readers) or _reads_a_loss(confirmed, side.row[index], is_mine):
            return False
        result = side.row[index].result
        if not readers and has_open and (result is None or result.size != 1):
            return False
        waiting += readers
    return True


def _reads_a_loss(confirmed: Confirmation, placed: Placed, is_mine: bool) -> bool:
    """Whether it goes on with a number with which the forward pass of the other side ends."""
    other = confirmed.side(not is_mine)
    return any(
        figures.size == 1 and not other.readers[value] and other.makers.get(value) is not None
        for _, figures in placed.inputs
        for value in confirmed.counterparts(figures, is_mine)
    )


def _place(confirmed: Confirmation, placed: Placed, is_mine: bool) -> float:
    """Where mine has come to when an operator of either side runs."""
    mine = confirmed.sides[0]
    if is_mine:
        return mine.place[id(placed.operator.parts[-1] if placed.operator.parts else placed.operator)]
    makers = (
        mine.makers.get(value, -1)
        for _, figures in placed.inputs
        if not figures.is_plain
        for value in confirmed.counterparts(figures, False)
    )
    return max(makers, default=-1) + 0.5
