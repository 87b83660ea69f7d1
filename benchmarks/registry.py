"""A row of measurements: what it is called, what its lines say, what they aim at, and the function that measures them.

The function is a generator. What stands before its first `yield` is set up once; each `yield` hands over one round, a
value for each line. The sampler takes rounds until they agree, and closes the generator, whose `with` blocks clean up.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

# What one round gives for a line: a number, or times whose ratio is the number and which are compared by their least
# as well. Two times are (ours, theirs); three are (with, without, theirs), for what something adds; four are
# (with, without, theirs with, theirs without).
Sample = float | tuple[float, ...]
Measure = Callable[["Bench"], Iterator[Mapping[str, Sample]]]

# Modules of benchmarks.rows, in the order of the page.
MODULES = (
    "limits", "time_of_a_step", "mindspore", "asynchronous", "mindspore_peer", "torch_compiled", "torch_eager",
    "torch_cuda", "other_tools", "torchair", "onnx", "statistics", "kernels", "small", "commands", "learning", "files",
    "compare", "growth", "start", "packs", "ranks", "viewer",
)  # fmt: skip


class NotMeasurableError(Exception):
    """A row needs what this machine does not have; the message says what."""


@dataclass(frozen=True)
class Line:
    """One line of a table.

    what     what is measured
    against  what the number is a ratio of; empty for one that has a unit
    aim      "<= 1.2", ">= 5", or empty: nothing is promised
    unit     of a number that is no ratio
    """

    what: str
    against: str = ""
    aim: str = ""
    unit: str = ""

    def is_met(self, value: float) -> bool | None:
        """Whether a value reaches the aim; None without an aim."""
        if not self.aim:
            return None
        sign, limit = self.aim.split()
        return value <= float(limit) if sign == "<=" else value >= float(limit)


@dataclass(frozen=True)
class Row:
    """What one process measures.

    section      heading of the page that its table stands under
    lines        key of a value in each round -> its line
    seconds      after which no round begins any more
    least        rounds that are taken in any case
    most         rounds that are taken at most
    environment  variables of the process that measures
    """

    name: str
    section: str
    lines: Mapping[str, Line]
    measure: Measure
    seconds: float = 60.0
    least: int = 5
    most: int = 25
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Bench:
    """What a measuring function knows of its run.

    is_quick  small batches and few rounds
    peers     name of a peer -> interpreter of its environment
    notes     key of a line -> what its measurement found out about itself, for the page
    """

    is_quick: bool
    peers: Mapping[str, Path]
    notes: dict[str, str] = field(default_factory=dict)

    def peer(self, name: str) -> Path:
        """Interpreter of a peer.   Raises: NotMeasurableError."""
        if name not in self.peers:
            raise NotMeasurableError(f"needs {name} (--peers)")
        return self.peers[name]


ROWS: dict[str, Row] = {}


def row(name: str, section: str, lines: Mapping[str, Line], **limits: object) -> Callable[[Measure], Measure]:
    """Register a measuring function. `limits`: as the fields of Row."""

    def register(measure: Measure) -> Measure:
        ROWS[name] = Row(name, section, lines, measure, **limits)  # type: ignore[arg-type]
        return measure

    return register


def load_rows() -> dict[str, Row]:
    """All rows by name, in the order of the page."""
    for module in MODULES:
        importlib.import_module(f"benchmarks.rows.{module}")
    return ROWS
