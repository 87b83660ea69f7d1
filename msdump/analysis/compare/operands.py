"""Which operand of a pair is another one than the other side's, and who made it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from msdump.analysis.compare.confirm import Confirmation
from msdump.analysis.compare.pairing import host_shape
from msdump.analysis.compare.trace import Placed, Trace
from msdump.analysis.compare.values import Figures
from msdump.analysis.steps import Operator, Slot, StepKey
from msdump.operators.kinds import is_product


@dataclass(frozen=True, slots=True)
class Source:
    """Where an operand of a pair comes from on each side, in this iteration or before; None for what no operator made.

    slot       of mine's operand
    elsewhere  who makes mine's operand in golden
    """

    slot: Slot
    mine: tuple[StepKey, Operator] | None
    golden: tuple[StepKey, Operator] | None
    elsewhere: tuple[StepKey, Operator] | None


@dataclass(frozen=True, slots=True)
class Met:
    """A pair of operators or chains.   operands: by slots of mine, the slot of golden that it was paired with"""

    mine: Placed
    golden: Placed
    operands: Mapping[Slot, Slot]


def source_of(confirmed: Confirmation, pair: Met) -> Source | None:
    """Who made the first operand that is another one than golden's; None where all are the same."""
    read = dict(pair.golden.inputs)
    for slot, figures in pair.mine.inputs:
        golden = read.get(pair.operands.get(slot, slot)) if slot in pair.operands else None
        if golden is None or confirmed.agree(figures, golden):
            continue
        sides = ((True, pair.mine, figures), (False, pair.golden, golden))
        own, other = (_maker(confirmed.side(is_mine), placed, one) for is_mine, placed, one in sides)
        elsewhere = (confirmed.sides[1].makers.get(value) for value in confirmed.counterparts(figures, True))
        places = [confirmed.sides[1].row[place] for place in elsewhere if place is not None]
        return Source(slot, own, other, next(((one.step.key, one.operator) for one in places), None))
    mine = confirmed.sides[0]
    place = mine.place[id((pair.mine.operator.parts or (pair.mine.operator,))[0])]
    for slot, figures in pair.mine.inputs:
        # A state that no operand of golden's is.
        is_alone = slot not in pair.operands and not figures.is_plain and not confirmed.is_known(figures, True)
        if is_alone and figures.value in mine.left and mine.maker_before(figures.value, place) is None:
            return Source(slot, mine.left[figures.value], None, None)
    return None


def _maker(side: Trace, placed: Placed, figures: Figures) -> tuple[StepKey, Operator] | None:
    place = side.maker_before(figures.value, side.place[id((placed.operator.parts or (placed.operator,))[-1])])
    return side.left.get(figures.value) if place is None else (side.row[place].step.key, side.row[place].operator)


def turned(confirmed: Confirmation, pair: Met) -> tuple[bool, Placed] | None:
    """The operator of one side alone that brings the elements of an operand into another order, where that is what a
    pair of operators of one kind goes wrong for, and whether it is mine's.
    """
    read = {slot: figures for slot, figures in pair.golden.inputs if slot in pair.operands.values()}
    for slot, figures in pair.mine.inputs:
        golden = next((one for one in read.values() if one.value in confirmed.partners[figures.value]), None)
        likeness = None if golden is None else confirmed.matches.likeness(figures, golden)
        if golden is None or likeness is None or not likeness.axes or slot not in pair.operands:
            continue
        if is_product(pair.mine.operator.op_type) and confirmed.sides[0].makers.get(figures.value) is None:
            continue  # a weight
        if host_shape(figures.tensor) != host_shape(golden.tensor):
            continue  # a weight, whose operators read it in their own layouts
        for is_mine, placed, start, other in (
            (True, pair.mine, figures, golden),
            (False, pair.golden, golden, figures),
        ):
            mover = _first_turned(confirmed, placed, start, other, is_mine)
            if mover is not None:
                return is_mine, mover
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
