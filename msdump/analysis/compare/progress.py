"""How far mine had come when an operator of either side ran."""

from __future__ import annotations

from collections.abc import Iterator

from msdump.analysis.compare.confirm import Confirmation
from msdump.analysis.compare.trace import Placed
from msdump.analysis.compare.values import Figures
from msdump.analysis.steps import Slot

PARTS = ("forward", "backward", "optimizer")


class Progress:
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
        return (PARTS.index(placed.part), *order)

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
