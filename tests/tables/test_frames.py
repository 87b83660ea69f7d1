"""A table holds what its columns say, whatever it is made of."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import msdump
from msdump.analysis import compare_dumps, find_non_finite, tensor_statistics
from msdump.tables.frames import FLAG, INTEGER, MAX_ROWS, NUMBER, SIZES, TEXT, Column, html_table, table_of
from tests.analysis.small_dump import floats, write_dump

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


IN, OUT = ("input", 0), ("output", 0)
TAGS = {"p", "table", "thead", "tbody", "tr", "th", "td"}


class Tags(HTMLParser):
    """The tags of a text and what stands between them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        assert not attrs
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@given(title=st.text(), rows=st.lists(st.tuples(st.text(), st.floats(), st.none())), more=st.integers(0, 5))
def test_nothing_but_a_table_comes_of_any_text(title: str, rows: list[tuple[str, float, None]], more: int) -> None:
    text = html_table(title, ("name", "value", "nothing"), rows, len(rows) + more)
    found = Tags(text)
    assert set(found.tags) <= TAGS and found.tags.count("tr") == 1 + min(MAX_ROWS, len(rows))
    assert ("more of" in text) == (len(rows) + more > min(MAX_ROWS, len(rows))) or "more of" in title
    assert not re.search("[\x00-\x09\x0b-\x1f\x1b\u202e]", text)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    name = "Net/<img src=x onerror=alert(1)>-op0"
    return write_dump(tmp_path / "dump", [(name, {IN: floats(-1, 1), OUT: floats(np.nan, 0)})])


def test_results_show_themselves(dump: Path, tmp_path: Path) -> None:
    golden = write_dump(
        tmp_path / "golden", [("Net/<img src=x onerror=alert(1)>-op0", {IN: floats(-1, 1), OUT: floats(1, 0)})]
    )
    shown = {
        "dump": msdump.open(dump)._repr_html_(),
        "statistics": tensor_statistics(dump)._repr_html_(),
        "nan": find_non_finite(dump)._repr_html_(),
        "comparison": compare_dumps(dump, golden)._repr_html_(),
        "agreement": compare_dumps(golden, golden)._repr_html_(),
    }
    for text in shown.values():
        assert set(Tags(text).tags) <= TAGS
    assert "<td>2</td>" in shown["dump"] and str(dump) in shown["dump"]
    assert "<td>input</td>" in shown["statistics"] and "<th>l2norm</th>" in shown["statistics"]
    assert "1 of 1 iterations have a NaN" in shown["nan"] and "&lt;img" in shown["nan"]
    assert "1 tensors differ in 1 pairs" in shown["comparison"] and "all 1 pairs agree" in shown["agreement"]
