"""Statistics of many tensors that compiled code has measured: columns, and the texts that writers make of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from msdump.statistics.stats import Statistics
from msdump.tensors.arrays import Array
from msdump.tensors.makers import maker

_made = maker(Statistics)


@dataclass(frozen=True, eq=False)
class NumberColumns:
    """Columns of a file, as texts with commas between.

    attributes  of `Statistics` that `form` is for, where there are finite values
    text_of     makes the text of the others
    """

    attributes: Sequence[str]
    form: str
    text_of: Callable[[Statistics], str]


_COUNTS = ("count", "negative", "positive", "zero", "nan", "negative_inf", "positive_inf", "size_bytes")
_FIELDS = {"max": "maximum", "min": "minimum", "avg": "average", "l2norm": "norm"}
_ATTRIBUTES = ("max", "min", "avg", "l2norm", *_COUNTS)


class CompiledNumbers(Protocol):
    """Compiled code that holds the tables.   since: copies of the records of these numbers, and which are integers"""

    def since(self, first: int, last: int) -> tuple[Array, Array]: ...

    def lines(self, frames: RowFrames, first_stamp: int, attributes: Sequence[str], end: str) -> str:
        """As `MeasuredNumbers.rows`."""


@dataclass(eq=False)
class RowFrames:
    """Rows of tensors that come back in each iteration, without their numbers and time stamps.

    heads, tails  text of each row before its time stamp and behind it
    places        number of the tensor of each
    size_bytes    that they take at most
    compiled      the same, as compiled code has it; made when it is first needed
    """

    heads: list[str] = field(default_factory=list)
    tails: list[str] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    size_bytes: int = 0
    compiled: Any = None

    def __len__(self) -> int:
        return len(self.heads)

    def copy(self) -> RowFrames:
        return RowFrames([*self.heads], [*self.tails], [*self.places], self.size_bytes)

    def add(self, frame: tuple[str, str], place: int, size_bytes: int) -> None:
        self.heads.append(frame[0])
        self.tails.append(frame[1])
        self.places.append(place)
        self.size_bytes += size_bytes


class MeasuredNumbers:
    """Statistics by number, in the order in which tensors were measured; more come while an iteration runs.

    Threads that write may ask at once: what is made of the tables is put in its place when it is complete.

    count   how many of the compiled ones are complete
    """

    def __init__(self, compiled: CompiledNumbers | None = None) -> None:
        self.count = 0
        self._compiled = compiled
        # The tables, and how many of the compiled numbers are in them.
        self._tables: tuple[list[tuple[Array, Array]], int] = [], 0
        # How many tables are in the rows, and these.
        self._rows: tuple[int, list[Statistics]] = (0, [])
        # How many tables are in the texts, and these.
        self._texts: dict[NumberColumns, tuple[int, list[str]]] = {}

    def add(self, table: Array, is_integer: Array) -> None:
        """More tensors, where no compiled code holds them.

        table       records with the fields of `Statistics` but for the extremes: `maximum` and `minimum` of floats,
                    `integer_maximum` and `integer_minimum` of the others; `average` and `norm`
        is_integer  by record
        """
        self._tables[0].append((table, is_integer))

    def _all_tables(self) -> list[tuple[Array, Array]]:
        tables, known = self._tables
        count = self.count
        if self._compiled is not None and count > known:
            tables = [*tables, self._compiled.since(known, count)]
            self._tables = tables, count
        return tables

    def __getitem__(self, number: int) -> Statistics:
        done, rows = self._rows
        if number >= len(rows):
            tables = self._all_tables()[done:]
            rows = rows.copy()
            for table, is_integer in tables:
                columns = [_column(table, is_integer, name) for name in _ATTRIBUTES]
                own = [_made(*values) for values in zip(*columns, strict=True)]
                for at in np.flatnonzero(~_has_finite(table)).tolist():
                    own[at] = replace(own[at], max=None, min=None, avg=None)
                rows += own
            self._rows = done + len(tables), rows
        return rows[number]

    def rows(self, frames: RowFrames, first_stamp: int, columns: NumberColumns, end: str) -> str:
        """Lines: what stands before a time stamp, this, what stands behind it, the numbers of a tensor, and the end.

        first_stamp  of the first line; each has one more than the one before
        """
        if self._compiled is not None:
            return self._compiled.lines(frames, first_stamp, columns.attributes, end)
        texts = self._texts_of(columns)
        return "".join(
            [
                f"{head}{stamp}{tail}{texts[place]}{end}"
                for stamp, (head, tail, place) in enumerate(
                    zip(frames.heads, frames.tails, frames.places, strict=True), first_stamp
                )
            ]
        )

    def _texts_of(self, columns: NumberColumns) -> Sequence[str]:
        """Text of each, made once."""
        name, attributes, form = columns, columns.attributes, columns.form
        done, texts = self._texts.get(name, (0, []))
        tables = self._all_tables()[done:]
        texts = texts.copy() if tables else texts
        for table, is_integer in tables:
            values_of = [_column(table, is_integer, name) for name in attributes]
            own = [form % values for values in zip(*values_of, strict=True)]
            for at in np.flatnonzero(~_has_finite(table)).tolist():
                own[at] = columns.text_of(self[len(texts) + at])
            texts += own
        self._texts[name] = done + len(tables), texts
        return texts


def _has_finite(table: Array) -> Array:
    finite: Array = table["count"] > table["nan"] + table["negative_inf"] + table["positive_inf"]
    return finite


def _column(table: Array, is_integer: Array, name: str) -> list[Any]:
    """Values of an attribute; what those of extremes and averages are where none is finite means nothing."""
    field = _FIELDS.get(name, name)
    values: list[Any] = table[field].tolist()
    if name in ("max", "min"):
        integers = table[f"integer_{field}"]
        for at in np.flatnonzero(is_integer).tolist():
            values[at] = int(integers[at])
    return values
