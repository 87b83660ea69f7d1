"""States that one iteration leaves to the next, as running statistics: a difference that shows where one is read began
where it was first written in another way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from msdump.analysis.compare.confirm import Confirmation
from msdump.analysis.compare.faults import Fault
from msdump.analysis.compare.trace import Trace
from msdump.analysis.compare.values import Figures
from msdump.analysis.steps import Operator, StepKey


class States:
    """The operators of mine that wrote what golden never had, of all iterations so far."""

    def __init__(self) -> None:
        # By the name of the operator, the first time that it did.
        self._writers: dict[str, tuple[StepKey, Operator]] = {}

    def note(self, confirmed: Confirmation) -> None:
        """Remember who wrote what an iteration reads and golden has not."""
        mine = confirmed.sides[0]
        for _, figures in _open_entries(confirmed, True):
            if figures.value in mine.left:
                step, operator = mine.left[figures.value]
                self._writers.setdefault(operator.label, (step, operator))

    def traced_back(self, confirmed: Confirmation, faults: Sequence[Fault]) -> tuple[Fault, ...]:
        """The faults, the first of them led by the operator that wrote a state in another way, where both sides read
        a state of one size in what it leads to, which neither has of the other.
        """
        first = faults[0] if faults else None
        if first is None or first.side != "mine" or first.order[0] != 0:
            return tuple(faults)
        mine = confirmed.sides[0]
        reached = _reached(confirmed, mine.place[id((first.operator.parts or (first.operator,))[-1])])
        sizes = {figures.size for _, figures in _open_entries(confirmed, False)}
        for place, figures in _open_entries(confirmed, True):
            if figures.size not in sizes or figures.value not in mine.left or place in reached:
                continue
            if reached.isdisjoint(_reached(confirmed, place)):
                continue
            step, operator = self._writers[mine.left[figures.value][1].label]
            ends = first.ends if first.paired is None else (first.paired,)
            led = Fault("mine", step, operator, (*first.order[:2], first.order[2] - 1), ends=ends)
            return (replace(led, facing=first.facing), *faults)
        return tuple(faults)


def _open_entries(confirmed: Confirmation, is_mine: bool) -> Iterator[tuple[int, Figures]]:
    """Places of operators of a side, and what they read that came in and the other side has not."""
    side = confirmed.side(is_mine)
    for place, placed in enumerate(side.row):
        for _, figures in placed.read:
            if figures.is_plain or figures.size == 1 or confirmed.is_known(figures, is_mine):
                continue
            if side.maker_before(figures.value, place) is None:
                yield place, figures


def _reached(confirmed: Confirmation, place: int) -> set[int]:
    """Places of mine that follow from one, where golden has not what they make."""
    mine: Trace = confirmed.sides[0]
    found, waiting = {place}, mine.readers_of(place)
    while waiting:
        place = waiting.pop()
        if place not in found and not (confirmed.right[0][place] and not mine.row[place].is_mover):
            found.add(place)
            waiting += mine.readers_of(place)
    return found
