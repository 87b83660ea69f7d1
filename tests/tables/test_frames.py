"""A table holds what its columns say, whatever it is made of."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from msdump.tables.frames import FLAG, INTEGER, NUMBER, SIZES, TEXT, Column, table_of

VALUES = {
    INTEGER: st.integers(-(1 << 70), 1 << 70),
    NUMBER: st.floats(),
    TEXT: st.text(st.characters() | st.characters(categories=["Cs"], max_codepoint=0xDCFF, min_codepoint=0xDC80)),
    FLAG: st.booleans(),
    SIZES: st.lists(st.integers(0, 1 << 70), max_size=3),
}
COLUMNS = tuple(Column(kind, kind, "") for kind in VALUES)


@given(st.lists(st.tuples(*(st.none() | values for values in VALUES.values())), max_size=5))
def test_values_are_those_of_their_kind(rows: list[tuple[object, ...]]) -> None:
    table = table_of(COLUMNS, rows)
    assert len(table.values) == len(COLUMNS) and table.row_count == len(rows)
    integers, numbers, texts, flags, sizes = table.values
    assert all(
        value is None or -(1 << 63) <= value < 1 << 63 for value in (*integers, *(n for s in sizes for n in s or ()))
    )
    assert all(value is None or type(value) is float for value in numbers)
    assert all(value is None or value.encode("utf-8") for value in texts if value != "")
    assert all(value in (None, True, False) for value in flags)
    assert [row[0] for row in rows if row[0] is None] == [None] * sum(row[0] is None for row in rows)


def test_bytes_that_are_no_text_are_written_out() -> None:
    table = table_of((Column("name", TEXT, ""),), [("a\udcffb",)])
    assert table.values == (["a\\xffb"],)
