"""What mine has in the place of an operator of golden that has no counterpart."""

from __future__ import annotations

import numpy as np

from msdump.analysis.compare.confirm import Confirmation
from msdump.analysis.compare.trace import Placed
from msdump.analysis.compare.values import Figures
from msdump.analysis.distance.bounds import small_gradients
from msdump.analysis.steps import Operator, StepKey
from msdump.errors import FormatError
from msdump.operators.kinds import kind_of_each
from msdump.operators.traits import memory_use

_DIVIDING = "addcdiv"


def maker_in_mine(confirmed: Confirmation, placed: Placed) -> tuple[StepKey, Operator] | None:
    """Mine's operator that made the first of what one of golden reads."""
    mine = confirmed.sides[0]
    values = (value for _, figures in placed.read if not figures.is_plain
              for value in confirmed.counterparts(figures, False) if value in mine.makers)  # fmt: skip
    maker = next((mine.row[mine.makers[value]] for value in values), None)
    return None if maker is None else (maker.step.key, maker.operator)


def holder_in_mine(confirmed: Confirmation, placed: Placed) -> tuple[StepKey, Operator] | None:
    """Mine's first operator that computes with a tensor that one of golden writes."""
    mine, written = confirmed.sides[0], memory_use(placed.operator.op_type).overwrites
    values = [value for slot, figures in placed.inputs if slot.number in written and not figures.is_plain
              for value in confirmed.counterparts(figures, False)]  # fmt: skip
    places = (place for value in values for place in mine.readers[value] if not mine.row[place].is_mover)
    first = min(places, default=None)
    return None if first is None else (mine.row[first].step.key, mine.row[first].operator)


def another_of_mine(confirmed: Confirmation, placed: Placed) -> Placed | None:
    """Mine's first operator of the kind of one of golden that computes another thing of the same tensors: whatever is
    made of it may be right, as the first step of Adam is for a gradient of any length.
    """
    mine, kind = confirmed.sides[0], kind_of_each(placed.operator.op_type)
    values = {value for _, figures in placed.read if not figures.is_plain and figures.size > 1
              for value in confirmed.counterparts(figures, False)}  # fmt: skip
    for reader in sorted({reader for value in values for reader in mine.readers[value]}):
        own = mine.row[reader]
        if kind_of_each(own.operator.op_type) != kind or own.is_mover or not confirmed.are_of_one_part(own, placed):
            continue
        tensors = {figures.value for _, figures in own.read if not figures.is_plain and figures.size > 1}
        if tensors <= values and own.telling is not None and not confirmed.is_known(own.telling, True):
            return own
    return None


def is_step_of_noise(confirmed: Confirmation, placed: Placed, is_mine: bool) -> bool:
    """Whether an update by a gradient that is divided by its own size differs from the other side's in small elements
    alone: of a gradient that is zero but for rounding, as of the bias of keys, every step is as large as the others.
    """
    if kind_of_each(placed.operator.op_type) != _DIVIDING or len(placed.inputs) != 3 or placed.result is None:
        return False
    other = confirmed.side(not is_mine)
    before, gradient, result = placed.inputs[0][1], placed.inputs[1][1], placed.result
    for value in confirmed.counterparts(before, is_mine):
        for reader in other.readers[value]:
            row = other.row[reader]
            count = len(row.outputs)
            if kind_of_each(row.operator.op_type) != _DIVIDING or len(row.inputs) != 3 * count:
                continue
            index = next((at for at, (_, one) in enumerate(row.inputs[:count]) if one.value == value), None)
            if index is not None and _agree_where_large(before, gradient, (result, row.outputs[index][1])):
                return True
    return False


def _agree_where_large(before: Figures, gradient: Figures, results: tuple[Figures, Figures]) -> bool:
    if len({figures.size for figures in (before, gradient, *results)}) > 1:
        return False
    try:
        start, slope, x, y = (
            np.asarray(one.tensor.load_host(), np.float64).reshape(-1) for one in (before, gradient, *results)
        )
    except (FormatError, OSError):
        return False
    return small_gradients(slope, start, x, y) is not None
