"""Statistics of many tensors that compiled code has measured: columns, and the texts that writers make of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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


class RowTexts(Protocol):
    """Compiled code that makes lines as `MeasuredNumbers.rows` does."""

    def __call__(
        self,
        heads: Sequence[str],
        tails: Sequence[str],
        first_stamp: int,
        places: Sequence[int],
        tables: list[tuple[Array, Array]],
        attributes: Sequence[str],
        end: str,
    ) -> str: ...


class MeasuredNumbers:
    """Statistics by number, in the order in which tensors were measured; more come while an iteration runs.

    Threads that write may ask at once: what is made of the tables is put in its place when it is complete.
    """

    def __init__(self, row_texts: RowTexts | None = None) -> None:
        self._row_texts = row_texts
        self._tables: list[tuple[Array, Array]] = []
        # How many tables are in the rows, and these.
        self._rows: tuple[int, list[Statistics]] = (0, [])
        # How many tables are in the texts, and these.
        self._texts: dict[NumberColumns, tuple[int, list[str]]] = {}

    def add(self, table: Array, is_integer: Array) -> None:
        """More tensors.

        table       records with the fields of `Statistics` but for the extremes: `maximum` and `minimum` of floats,
                    `integer_maximum` and `integer_minimum` of the others; `average` and `norm`
        is_integer  by record
        """
        self._tables.append((table, is_integer))

    def __getitem__(self, number: int) -> Statistics:
        done, rows = self._rows
        if number >= len(rows):
            tables = self._tables[done:]
            rows = rows.copy()
            for table, is_integer in tables:
                columns = [_column(table, is_integer, name) for name in _ATTRIBUTES]
                own = [_made(*values) for values in zip(*columns, strict=True)]
                for at in np.flatnonzero(~_has_finite(table)).tolist():
                    own[at] = replace(own[at], max=None, min=None, avg=None)
                rows += own
            self._rows = done + len(tables), rows
        return rows[number]

    def rows(
        self,
        heads: Sequence[str],
        tails: Sequence[str],
        first_stamp: int,
        places: Sequence[int],
        columns: NumberColumns,
        end: str,
    ) -> str:
        """Lines: what stands before a time stamp, this, what stands behind it, the numbers of a tensor, and the end.

        first_stamp  of the first line; each has one more than the one before
        places       of the tensor of each line
        """
        if self._row_texts is not None:
            return self._row_texts(heads, tails, first_stamp, places, self._tables, columns.attributes, end)
        texts = self._texts_of(columns)
        return "".join(
            [
                f"{head}{stamp}{tail}{texts[place]}{end}"
                for stamp, (head, tail, place) in enumerate(zip(heads, tails, places, strict=True), first_stamp)
            ]
        )

    def _texts_of(self, columns: NumberColumns) -> Sequence[str]:
        """Text of each, made once."""
        name, attributes, form = columns, columns.attributes, columns.form
        done, texts = self._texts.get(name, (0, []))
        tables = self._tables[done:]
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
