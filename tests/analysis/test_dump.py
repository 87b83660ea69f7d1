"""A dump as a table of its tensors, and one tensor as a picture."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

import msdump
from msdump.analysis.overview.dump import Dump
from msdump.errors import ConfigError
from msdump.tables.frames import FLAG, INTEGER, NUMBER, SIZES, TEXT, Column, duckdb_connection, table_of
from tests.analysis.small_dump import floats, write_dump

IN, OUT = ("input", 0), ("output", 0)


@pytest.fixture
def dump(tmp_path: Path) -> Dump:
    hostile = "Net/'); DROP TABLE tensors; ---op2"
    operators = [
        ("Net/Log-op0", {IN: floats(-1, 1), OUT: floats(math.nan, 0)}),
        ("Net/Exp-op1", {IN: floats(math.nan, 0), OUT: floats(math.nan, 1)}),
        (hostile, {OUT: floats(3, 4)}),
    ]
    return msdump.open(write_dump(tmp_path / "dump", operators))


def test_sql_counts_as_the_table_does(dump: Dump) -> None:
    pytest.importorskip("duckdb")
    query = "select op_type, io, nan, max, shape from tensors where nan > 0 order by operator, io"
    rows = dump.sql(query).fetchall()
    assert [row[:3] for row in rows] == [("Log", "output", 1), ("Exp", "input", 1), ("Exp", "output", 1)]
    assert [row[4] for row in rows] == [[2]] * 3
    assert dump.sql("select sum(l2norm) from tensors where l2norm between 4 and 6").fetchall() == [(5.0,)]
    assert dump.sql("select count(*) from tensors").fetchall() == [(5,)]


def test_duckdb_tells_nan_from_what_is_not_known() -> None:
    pytest.importorskip("duckdb")
    kinds = {"i": INTEGER, "n": NUMBER, "t": TEXT, "f": FLAG, "s": SIZES}
    columns = [Column(name, kind, "") for name, kind in kinds.items()]
    rows = [(1, math.nan, "x", True, [1, 2]), (None, None, None, None, None), (-(1 << 63), math.inf, "", False, [])]
    got = duckdb_connection({"all": table_of(columns, rows)}, "test").sql('select * from "all"').fetchall()
    assert repr(got) == repr(rows)
    assert duckdb_connection({"none": table_of(columns, [])}, "test").sql('select * from "none"').fetchall() == []


def test_without_duckdb_the_message_says_so(dump: Dump, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ConfigError, match="pip install duckdb"):
        dump.sql("select 1")


def test_a_tensor_is_drawn(dump: Dump, monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = next(iter(dump))
    monkeypatch.setitem(sys.modules, "treescope", None)
    with pytest.raises(ConfigError, match="pip install treescope"):
        tensor.show()
    monkeypatch.undo()
    pytest.importorskip("treescope")
    assert "<" in tensor.show()._repr_html_()
