"""learning.json: which parameters of a model ask for a gradient, what made it, and which optimizer steps them.

One file for each rank, `rank_N/.dump_metadata/learning.json`; docs/formats/learning.md describes it.
"""

from __future__ import annotations

import json
import math
import os
from bisect import bisect_right
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from msdump.errors import FormatError
from msdump.formats.atomic import make_dirs, write_file
from msdump.storage.files import read_file
from msdump.storage.plain import unreadable

LEARNING_FILE = "learning.json"
VERSION = 1
_MODE = 0o400
_MOST = 1 << 53
# Of each list: far more than a model has.
MAX_ROWS = 1_000_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GradientSpan:
    """What is true of a parameter after the backward passes from one iteration on, until the next span.

    first     the first of these iterations
    asks      whether it asks for a gradient
    has       whether it has one
    graph, operator, slot  the output that is that gradient; None where nobody knows
    """

    first: int
    asks: bool
    has: bool
    graph: int | None = None
    operator: str | None = None
    slot: int | None = None


@dataclass(frozen=True, slots=True)
class LearningParameter:
    """A parameter of the model.

    optimizer  number of the one that steps it; None: none does
    since      the iteration from which on the name means another tensor than before; 0: it always was this one
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    optimizer: int | None
    spans: tuple[GradientSpan, ...]
    since: int = 0

    def at(self, iteration: int) -> GradientSpan | None:
        """What is true of it after the backward passes of an iteration; None before the first one."""
        place = bisect_right(self.spans, iteration, key=lambda span: span.first)
        return self.spans[place - 1] if place else None


@dataclass(frozen=True, slots=True)
class LearningOptimizer:
    """An optimizer.

    name      of its class
    rates     learning rates: iteration from which on, the largest one of its groups
    steps     iterations in which it made a step, as spans of (first, last)
    skipped   iterations in which a scaler of the loss left its step out, likewise
    empty     iterations in which it made a step and found no gradient, likewise
    kept      after how many of its steps the next backward pass found their gradients still there
    cleared   after how many it did not
    outside   shapes of what it steps that is in no module that was called: what never had a gradient, and what another
              tensor has taken the name of
    path, line, code  of the script's line that makes its first step; "", 0, "" where nobody knows
    """

    name: str
    rates: tuple[tuple[int, float], ...]
    steps: tuple[tuple[int, int], ...]
    skipped: tuple[tuple[int, int], ...]
    outside: tuple[tuple[int, ...], ...]
    empty: tuple[tuple[int, int], ...] = ()
    kept: int = 0
    cleared: int = 0
    path: str = ""
    line: int = 0
    code: str = ""


@dataclass(frozen=True, slots=True)
class Cut:
    """An operator that reads what asks for a gradient, and whose result asks for none.

    how    "detach", or where none is recorded "no_grad" or "checkpoint"
    path, line, code  of the script's line that calls the checkpoint; "", 0, "" for another
    """

    graph: int
    operator: str
    how: str
    path: str = ""
    line: int = 0
    code: str = ""


@dataclass(frozen=True, slots=True)
class Stray:
    """A parameter that an operator reads, that has a gradient, and that is in no module that was called.

    operator  that reads it, of the forward pass
    optimizer whether one steps it
    """

    graph: int
    operator: str
    shape: tuple[int, ...]
    optimizer: bool


@dataclass(frozen=True, slots=True)
class Learning:
    """Of one rank.

    backwards  iterations with a backward pass that were looked at, as spans of (first, last)
    trainings  those in which a module with parameters was in training mode, likewise; None where nobody knows
    """

    backwards: tuple[tuple[int, int], ...]
    parameters: tuple[LearningParameter, ...]
    optimizers: tuple[LearningOptimizer, ...]
    cuts: tuple[Cut, ...] = ()
    strays: tuple[Stray, ...] = ()
    trainings: tuple[tuple[int, int], ...] | None = None


def write_learning(directory: str | os.PathLike[str], learning: Learning) -> None:
    """Write the file of a rank, over an earlier one.   Raises: WriteError."""
    make_dirs(directory)
    text = json.dumps({"version": VERSION, **asdict(learning)}, allow_nan=False) + "\n"
    write_file(Path(directory) / LEARNING_FILE, [text.encode()], _MODE, replace=True)


def read_learning(path: str | os.PathLike[str]) -> Learning:
    """The file of a rank.   Raises: FormatError for one that is damaged, of a later version, or cannot be read."""
    where = os.fspath(path)
    try:
        content = json.loads(read_file(path))
    except FormatError:
        raise
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{where}: expected JSON, got something else: {error}.") from error
    except OSError as error:
        raise unreadable(path, error) from error
    if not isinstance(content, dict) or content.get("version") != VERSION:
        got = content.get("version") if isinstance(content, dict) else type(content).__name__
        raise FormatError(
            f"{where}: expected an object of version {VERSION}, got {str(got)[:80]}. "
            "Read it with the msdump that wrote it."
        )
    root = _Reader(where, content)
    return Learning(
        root.spans("backwards"),
        tuple(
            LearningParameter(
                row.text("name"), row.text("dtype"), row.sizes("shape"), row.number_or_none("optimizer"),
                tuple(
                    GradientSpan(
                        span.number("first"), span.flag("asks"), span.flag("has"), span.number_or_none("graph"),
                        span.text_or_none("operator"), span.number_or_none("slot"),
                    )
                    for span in row.rows("spans")
                ),
                row.number_or_none("since") or 0,
            )
            for row in root.rows("parameters")
        ),
        tuple(
            LearningOptimizer(
                row.text("name"), row.rates("rates"), row.spans("steps"), row.spans("skipped"),
                tuple(row.shape(shape, "outside") for shape in row.items("outside")), row.spans("empty"),
                row.number("kept"), row.number("cleared"), row.text("path"), row.number("line"), row.text("code"),
            )
            for row in root.rows("optimizers")
        ),
        tuple(
            Cut(
                row.number("graph"), row.text("operator"), row.text("how"), row.text("path"), row.number("line"),
                row.text("code"),
            )
            for row in root.rows("cuts")
        ),
        tuple(
            Stray(row.number("graph"), row.text("operator"), row.sizes("shape"), row.flag("optimizer"))
            for row in root.rows("strays")
        ),
        root.spans_or_none("trainings"),
    )  # fmt: skip


class _Reader:
    """Values of one object.   Raises: FormatError for each that is of another kind."""

    def __init__(self, where: str, content: dict[str, Any]) -> None:
        self._where, self._content = where, content

    def _fail(self, key: str, expected: str) -> FormatError:
        got = str(self._content.get(key))[:80]
        return FormatError(f"{self._where}, {key}: expected {expected}, got {got}.")

    def items(self, key: str) -> list[Any]:
        value = self._content.get(key)
        if not isinstance(value, list) or len(value) > MAX_ROWS:
            raise self._fail(key, f"a list of at most {MAX_ROWS}")
        return value

    def rows(self, key: str) -> list[_Reader]:
        rows = self.items(key)
        if not all(isinstance(row, dict) for row in rows):
            raise self._fail(key, "objects")
        return [_Reader(f"{self._where}, {key}[{at}]", row) for at, row in enumerate(rows)]

    def text(self, key: str) -> str:
        value = self._content.get(key)
        if not isinstance(value, str):
            raise self._fail(key, "text")
        return value

    def text_or_none(self, key: str) -> str | None:
        return None if self._content.get(key) is None else self.text(key)

    def flag(self, key: str) -> bool:
        value = self._content.get(key)
        if not isinstance(value, bool):
            raise self._fail(key, "true or false")
        return value

    def number(self, key: str) -> int:
        value = self._content.get(key)
        if not _is_number(value):
            raise self._fail(key, f"an integer from 0 to {_MOST}")
        return int(value)  # type: ignore[arg-type]

    def number_or_none(self, key: str) -> int | None:
        return None if self._content.get(key) is None else self.number(key)

    def shape(self, value: object, key: str) -> tuple[int, ...]:
        if not isinstance(value, list) or not all(map(_is_number, value)):
            raise self._fail(key, "sizes")
        return tuple(value)

    def sizes(self, key: str) -> tuple[int, ...]:
        return self.shape(self._content.get(key), key)

    def spans(self, key: str) -> tuple[tuple[int, int], ...]:
        spans = [self.shape(span, key) for span in self.items(key)]
        if any(len(span) != 2 or span[0] > span[1] for span in spans):
            raise self._fail(key, "pairs of a first and a last iteration")
        return tuple((span[0], span[1]) for span in spans)

    def spans_or_none(self, key: str) -> tuple[tuple[int, int], ...] | None:
        return None if self._content.get(key) is None else self.spans(key)

    def rates(self, key: str) -> tuple[tuple[int, float], ...]:
        rates = self.items(key)
        for row in rates:
            is_pair = isinstance(row, list) and len(row) == 2 and _is_number(row[0])
            if not is_pair or type(row[1]) not in (int, float) or not math.isfinite(row[1]):
                raise self._fail(key, "pairs of an iteration and a rate")
        return tuple((row[0], float(row[1])) for row in rates)


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value <= _MOST
