"""Which operand of a pair is another one than the other side's, and who made it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from msdump.analysis.compare.common_tensors import host_shape
from msdump.analysis.compare.confirm import Confirmation
from msdump.analysis.compare.trace import Placed, Trace
from msdump.analysis.compare.values import Figures
from msdump.analysis.steps import Operator, Slot, StepKey
from msdump.operators.kinds import is_product

_ALIKE = 1e-5


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
        parts = pair.mine.operator.parts or (pair.mine.operator,)
        if is_product(parts[0].op_type) and confirmed.sides[0].makers.get(figures.value) is None:
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


def reordered(confirmed: Confirmation, reader: Placed, is_mine: bool) -> tuple[bool, Placed] | None:
    """The operator that brings the elements of an operand into an order in which the other side does not compute with
    them, though it has them all: mine's where it has one, and whether it does. None where no operand is of that kind.
    """
    place = confirmed.side(is_mine).place[id((reader.operator.parts or (reader.operator,))[0])]
    for _, figures in reader.inputs:
        maker = confirmed.side(is_mine).maker_before(figures.value, place)
        if maker is None or figures.is_plain or not figures.has_elements:
            continue
        if confirmed.is_known(figures, is_mine):
            mover = _other_order(confirmed, reader, maker, figures, is_mine)
            if mover is not None:
                return is_mine, mover
            continue
        if not confirmed.side(is_mine).row[maker].is_mover:
            continue
        opened = confirmed.open_values(not is_mine).values()
        other = next((one for one in opened if _has_same_elements(figures, one)), None)
        if other is None:
            continue
        makers = {is_mine: maker, not is_mine: confirmed.side(not is_mine).makers.get(other.value)}
        movers = ((side, _first_mover(confirmed, makers[side], side)) for side in (True, False))
        return next(((side, mover) for side, mover in movers if mover is not None), None)
    return None


def _other_order(confirmed: Confirmation, reader: Placed, maker: int, figures: Figures, is_mine: bool) -> Placed | None:
    """The first of the movers that end in an operand which the other side reads in another order of the axes, in one
    shape or in a product with more than the last two exchanged, or hands on alone.
    """
    side, other = confirmed.side(is_mine), confirmed.side(not is_mine)
    values = set(confirmed.counterparts(figures, is_mine))
    read = [one for placed in other.row if not placed.is_mover for _, one in placed.inputs if one.value in values]
    orders = [_order(confirmed, figures, one, is_mine) or () for one in read]
    for one, order in zip(read, orders, strict=True):
        left = order[:-2] if is_product(reader.operator.op_type) else order
        is_one_shape = host_shape(figures.tensor) == host_shape(one.tensor) or left is not order
        if not is_one_shape or left == tuple(range(len(left))):
            return None
    while side.row[maker].is_mover:
        placed = side.row[maker]
        telling = next((one for _, one in placed.inputs if not one.is_plain), None)
        if telling is None:
            return None
        if telling.size != figures.size:
            return placed if confirmed.is_known(telling, is_mine) else None
        if any(
            _order(confirmed, telling, one, is_mine) == () for one in _figures_of(other, confirmed, telling, is_mine)
        ):
            return placed
        before = side.maker_before(telling.value, maker)
        if before is None:
            return None
        maker = before
    return None


def _figures_of(other: Trace, confirmed: Confirmation, figures: Figures, is_mine: bool) -> list[Figures]:
    """The counterparts of a value."""
    makers = (other.makers.get(value) for value in confirmed.counterparts(figures, is_mine))
    rows = (other.row[place] for place in makers if place is not None)
    return [one for placed in rows for _, one in placed.outputs if one.size == figures.size]


def _order(confirmed: Confirmation, figures: Figures, other: Figures, is_mine: bool) -> tuple[int, ...] | None:
    likeness = confirmed.matches.likeness(*((figures, other) if is_mine else (other, figures)))
    return None if likeness is None else likeness.axes


def _first_mover(confirmed: Confirmation, maker: int | None, is_mine: bool) -> Placed | None:
    """The first of the movers that end in one at a place, which reads what both sides have."""
    side = confirmed.side(is_mine)
    while maker is not None and side.row[maker].is_mover and side.row[maker].inputs:
        telling = [figures for _, figures in side.row[maker].inputs if not figures.is_plain]
        if not telling or any(confirmed.is_known(figures, is_mine) for figures in telling):
            return side.row[maker]
        maker = side.maker_before(telling[0].value, maker)
    return None


def _has_same_elements(one: Figures, other: Figures) -> bool:
    """Whether two values hold the same numbers in any order."""
    if one.size != other.size or not math.isclose(one.length, other.length, rel_tol=_ALIKE):
        return False
    x, y = (np.sort(each.tensor.load_host().astype(np.float64).reshape(-1)) for each in (one, other))
    return bool(np.allclose(x, y, rtol=_ALIKE, atol=_ALIKE * max(-one.lowest, one.largest)))


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
