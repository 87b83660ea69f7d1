"""`opname_range`: which operators lie between two names, told one operator at a time in the order of execution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True)
class NameRange:
    """From the operator `begin` to the operator `end`, both included."""

    begin: str
    end: str


class RangeState(Enum):
    INIT = "init"
    START = "start"
    STOP = "stop"
    ERROR = "error"


_BEGIN, _END, _OTHER = 0, 1, 2
# state -> the next one at the beginning, at the end and at any other operator.   Source: ACL's graph engine.
_NEXT = {
    RangeState.INIT: (RangeState.START, RangeState.ERROR, RangeState.INIT),
    RangeState.START: (RangeState.START, RangeState.STOP, RangeState.START),
    RangeState.STOP: (RangeState.ERROR, RangeState.STOP, RangeState.INIT),
    RangeState.ERROR: (RangeState.ERROR, RangeState.ERROR, RangeState.ERROR),
}


class RangeWalk:
    """One range on its way through one execution order.

    Edges:  an end before the beginning, or a beginning right after the end, is an error; from there on the
            range holds nothing. A range whose ends are equal is that one operator.
    """

    def __init__(self, name_range: NameRange) -> None:
        self.name_range = name_range
        self.state = RangeState.INIT

    def step(self, op_name: str) -> bool:
        """The next operator; True when it lies in the range."""
        begin, end = self.name_range.begin, self.name_range.end
        event = _BEGIN if op_name == begin else _END if op_name == end else _OTHER
        self.state = _NEXT[self.state][event]
        is_inside = self.state in (RangeState.START, RangeState.STOP)
        if self.state is RangeState.START and begin == end:
            self.state = RangeState.STOP
        return is_inside


def in_ranges(ranges: Sequence[NameRange], op_names: Sequence[str]) -> list[bool]:
    """For each operator, in the order of execution: whether it lies in any of the ranges."""
    walks = [RangeWalk(name_range) for name_range in ranges]
    insides = ([walk.step(name) for walk in walks] for name in op_names)  # every walk sees every operator
    return [any(inside) for inside in insides]
