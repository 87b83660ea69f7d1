"""Tables: the same rows in each of them, and names that stay values."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from msdump.analysis.exporting import export
from msdump.analysis.exporting.tables import COLUMNS, MORE_COLUMNS, tensor_table
from msdump.analysis.overview.contents import Contents
from msdump.cli.main import main
from msdump.errors import ConfigError, FormatError, WriteError
from tests.analysis.exporting.conftest import HOSTILE, NAN_LINE


def query(path: Path, text: str) -> list[Any]:
    database = sqlite3.connect(path)
    try:
        return database.execute(text).fetchall()
    finally:
        database.close()


def test_the_database_says_where_the_nan_was_made(nan_dump: Path, tmp_path: Path) -> None:
    written, contents = export(nan_dump, "sqlite", tmp_path / "new" / "x.sqlite")
    (path,) = written.paths
    assert not contents.damaged and [path.name for path in path.parent.iterdir()] == ["x.sqlite"]
    made = query(path, "select op_type, source_line, io, nan, shape from tensors where health = 'not finite made here'")
    assert made == [("Log", NAN_LINE, "output", 36, "[4, 16]")]
    assert query(path, "select count(*) from tensors") == [(len(contents.statistics.rows),)] == [(152,)]
    assert query(path, "select op_type, nan, tensors from operators limit 3 offset 2") == [("Log", 36, 2)] + query(
        path, "select op_type, nan, tensors from operators limit 2 offset 3"
    )
    assert query(path, "pragma user_version") == [(1,)] and query(path, "select count(*) from damaged") == [(0,)]
    columns = [row[1] for row in query(path, "pragma table_info(tensors)")]
    assert columns == [column.name for column in (*COLUMNS, *MORE_COLUMNS)]


def test_a_golden_dump_gives_errors(moved_dump: Path, golden_dump_folder: Path, tmp_path: Path) -> None:
    export(moved_dump, "sqlite", tmp_path / "x.sqlite", golden_dump_folder)
    first = query(tmp_path / "x.sqlite", "select full_name, io, slot, error from tensors where health = 'differs'")[0]
    assert first[0].endswith("fc2-Dense/MatMul-op3") and first[1:3] == ("input", 1) and first[3] > 1


def test_hostile_names_stay_values(hostile_dump: Path, tmp_path: Path) -> None:
    export(hostile_dump, "sqlite", tmp_path / "x.sqlite")
    names = [name for (name,) in query(tmp_path / "x.sqlite", "select distinct op_name from tensors")]
    assert len(names) >= len(HOSTILE) and any("DROP TABLE tensors" in name for name in names)
    assert query(tmp_path / "x.sqlite", "select sum(nan) from tensors") == [(len(HOSTILE),)]


def test_damaged_files_are_listed_and_tell_by_the_exit_status(
    hostile_dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    victim = min(hostile_dump.rglob("*.output.0.*.npy"))
    victim.write_bytes(victim.read_bytes()[:-1])
    assert main(["export", str(hostile_dump), "--to", "sqlite", "-o", str(tmp_path / "x.sqlite")]) == 4
    assert "damaged: " in capsys.readouterr().err
    ((file, problem),) = query(tmp_path / "x.sqlite", "select * from damaged")
    assert file == str(victim) and "expected" in problem


def test_parquet_is_the_same_table(nan_dump: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    export(nan_dump, "parquet", tmp_path / "x.parquet")
    table = tensor_table(Contents(nan_dump))
    read = parquet.read_table(tmp_path / "x.parquet")
    assert read.column_names == [column.name for column in table.columns]
    assert read["health"].to_pylist() == table.values[-2] and read["nan"].to_pylist()[7] == 36


def test_places_that_cannot_be_written(nan_dump: Path, tmp_path: Path) -> None:
    for path in ("-", tmp_path):
        with pytest.raises(ConfigError, match="expected the path of a file to write"):
            export(nan_dump, "sqlite", path)
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError):
        export(nan_dump, "sqlite", tmp_path / "file" / "x.sqlite")


def test_what_export_does_not_take(nan_dump: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'got \'sqlit\'\. Did you mean "sqlite"'):
        export(nan_dump, "sqlit")
    with pytest.raises(FormatError, match="expected a folder or file of a dump"):
        export(tmp_path / "none", "sqlite")
    with pytest.raises(ConfigError, match="expected tensors or statistics"):
        export(tmp_path, "sqlite", tmp_path / "x.sqlite")


def test_every_column_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "exports.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*) \|$", page, re.MULTILINE)
    assert rows == [(column.name, column.kind, column.meaning) for column in (*COLUMNS, *MORE_COLUMNS)]
