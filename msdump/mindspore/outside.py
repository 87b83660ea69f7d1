"""Operators that a script runs one by one, outside of any cell, gradient and compiled function: no dump shows them.

An iteration is a run of a graph or a call of the outermost cell; an operator between two of them belongs to none. The
report of a dump names their places instead.
"""

from __future__ import annotations

import os
import sys
from collections import Counter, defaultdict
from contextvars import ContextVar
from types import FrameType

from msdump._version import FOLDER
from msdump.config.environment import DUMP_CONFIG
from msdump.engine import opening
from msdump.process import sessions

# Set while a PyNative step runs, whether a dump watches it or not.
is_in_step: ContextVar[bool] = ContextVar("msdump_mindspore_step", default=False)

_MAX_PLACES = 20

# (file, line, function) -> how often each operator ran there
_counts: defaultdict[tuple[str, int, str], Counter[str]] = defaultdict(Counter)


def note(op_type: str) -> None:
    """An operator runs at once. It is counted where a dump is on, or configured and not yet begun."""
    if is_in_step.get():
        return
    if opening.current() is None and (opening.is_decided() or not os.environ.get(DUMP_CONFIG)):
        return
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(FOLDER):
        frame = frame.f_back
    if frame is not None:
        _counts[frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name][op_type] += 1


def lines() -> tuple[str, ...]:
    """One line for each place, in the order in which they were met; the first twenty."""
    places = list(_counts.items())
    shown = [_line(*place, counts) for place, counts in places[:_MAX_PLACES]]
    if len(places) > _MAX_PLACES:
        shown.append(f"no cell: {len(places) - _MAX_PLACES} more places.")
    return tuple(shown)


def _line(file: str, line: int, function: str, counts: Counter[str]) -> str:
    total = sum(counts.values())
    times = "operator" if total == 1 else "operators"
    return (
        f"no cell: {file}:{line} in {function}: {total} {times} ({', '.join(sorted(counts))}). "
        "A dump shows what a Cell, a gradient or a function under jit runs."
    )


sessions.add_remarks(lines)
sessions.call_at_reset(_counts.clear)
