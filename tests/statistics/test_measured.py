"""Columns of statistics that were measured elsewhere: the same values and texts as of the statistics themselves."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from msdump.statistics.measured import MeasuredNumbers, NumberColumns, RowFrames
from msdump.statistics.stats import Statistics, statistics
from msdump.tensors.arrays import Array

COUNTS = ("count", "negative", "positive", "zero", "nan", "negative_inf", "positive_inf", "size_bytes")
RECORD = np.dtype(
    [(name, np.float64) for name in ("maximum", "minimum", "average", "norm")]
    + [(name, np.int64) for name in ("integer_maximum", "integer_minimum", *COUNTS)]
)


def table_of(measured: list[Statistics], is_integer: Array) -> Array:
    """Records as compiled code fills them: of extremes that do not exist, and of the other kind, anything."""
    table = np.full(len(measured), 7, RECORD)
    for row, numbers, is_one in zip(table, measured, is_integer, strict=True):
        if numbers.max is not None and numbers.min is not None and numbers.avg is not None:
            kind = "integer_" if is_one else ""
            row[f"{kind}maximum"], row[f"{kind}minimum"] = numbers.max, numbers.min
            row["average"] = numbers.avg
        row["norm"] = numbers.l2norm
        for name in COUNTS:
            row[name] = getattr(numbers, name)
    return table


def text_of(numbers: Statistics) -> str:
    return "null" if numbers.max is None else f"{numbers.max:g}|{numbers.avg:g}|{numbers.nan}"


class Read(np.ndarray):
    """A table that calls a function before it is read."""

    on_read: Callable[[], None] = staticmethod(lambda: None)

    def __getitem__(self, key: object) -> Array:
        self.on_read()
        return super().__getitem__(key)  # type: ignore[no-any-return, index]


COLUMNS = NumberColumns(("max", "avg", "nan"), "%g|%g|%s", text_of)
arrays = st.one_of(
    npst.arrays(np.float32, npst.array_shapes(max_side=4), elements=st.floats(width=32)),
    npst.arrays(np.int64, npst.array_shapes(max_side=4)),
)


@given(st.lists(st.lists(arrays, max_size=4), max_size=4))
def test_rows_and_texts_are_those_of_the_statistics(batches: list[list[Array]]) -> None:
    numbers = MeasuredNumbers()
    expected: list[Statistics] = []
    for batch in batches:
        measured = [statistics(array, array.dtype.name) for array in batch]
        is_integer = np.array([array.dtype.kind == "i" for array in batch], bool)
        numbers.add(table_of(measured, is_integer), is_integer)
        expected += measured
        heads = [f"{place}:" for place in range(len(expected))]
        frames = RowFrames(heads, ["|"] * len(heads), list(range(len(heads))))
        rows = numbers.rows(frames, 5, COLUMNS, "\n")
        assert rows.splitlines() == [f"{at}:{at + 5}|{text_of(each)}" for at, each in enumerate(expected)]
    for place, each in enumerate(expected):
        found = numbers[place]
        for name in ("max", "min", "avg", "l2norm", *COUNTS):
            one, other = getattr(found, name), getattr(each, name)
            assert one == other or (one != one and other != other), name


def test_threads_make_rows_at_once() -> None:
    numbers = MeasuredNumbers()
    expected = [statistics(np.full(3, value, np.float32), "float32") for value in range(4)]
    tables = []
    for part in (expected[:2], expected[2:]):
        is_integer = np.zeros(2, bool)
        tables.append(table_of(part, is_integer).view(Read))
        numbers.add(tables[-1], is_integer)
    # Both make rows of the first table, one after the other, before either makes those of the second.
    other_begins, other_goes_on, other_has_one, all_is_done = (threading.Event() for _ in range(4))
    thread = threading.Thread(target=lambda: numbers[0])

    def read_first() -> None:
        if threading.current_thread() is thread:
            other_begins.set()
            assert other_goes_on.wait(30)
        elif not other_begins.is_set():
            thread.start()
            assert other_begins.wait(30)

    def read_second() -> None:
        if threading.current_thread() is thread:
            other_has_one.set()
            assert all_is_done.wait(30)
        else:
            other_goes_on.set()
            assert other_has_one.wait(30)

    tables[0].on_read, tables[1].on_read = read_first, read_second
    first = numbers[0]
    all_is_done.set()
    thread.join()
    assert [first.max, *(numbers[place].max for place in range(1, 4))] == [0, 1, 2, 3]
