"""Statistics of a dump: values, the seed's csv, and two dumps compared without tensors."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msdump.analysis import compare_statistics, tensor_statistics, write_parquet, write_statistic_files
from msdump.cli.main import main
from msdump.errors import ConfigError
from msdump.formats.dump_dir import DumpDir
from msdump.formats.sidecars import Lost, write_lost
from msdump.formats.statistic_csv import SEED_TITLES, read_statistic_csv
from msdump.statistics.md5 import md5_hex
from msdump.statistics.stats import statistics
from tests.analysis.small_dump import floats, write_dump

IN, OUT = ("input", 0), ("output", 0)
X = floats(0, -1.5, 2.5, math.nan)


def test_every_tensor_is_measured(tmp_path: Path) -> None:
    write_dump(tmp_path, [("D/Add-op1", {IN: X, OUT: np.array([1, 2, 3], np.int32)}), ("Parameter.w", {OUT: X})])
    report = tensor_statistics(tmp_path, has_md5=True)
    assert [(row.tensor.op_name, row.tensor.io) for row in report.rows] == [
        ("Add-op1", "input"), ("Add-op1", "output"), ("w", "output"),
    ]  # fmt: skip
    # As text: NaN equals nothing, itself included.
    assert str(report.rows[0].numbers) == str(statistics(X, "float32"))
    assert report.rows[0].md5 == md5_hex(X)
    assert [row.tensor.op_type for row in tensor_statistics(tmp_path, op_type="Add").rows] == ["Add", "Add"]


@pytest.mark.parametrize("name", ["aten.log.default", "aten_log_default"])
def test_a_type_of_pytorch_is_selected_as_it_is_printed_and_as_files_have_it(tmp_path: Path, name: str) -> None:
    write_dump(tmp_path, [("D/aten_log_default-op1", {OUT: X}), ("D/Add-op2", {OUT: X})])
    assert [row.tensor.op_type for row in tensor_statistics(tmp_path, op_type=name).rows] == ["aten_log_default"]
    assert [tensor.op_type for tensor in DumpDir.open(tmp_path).tensors(op_type=name)] == ["aten_log_default"]


def test_csv_is_the_one_that_the_dump_had_written(own_dump: Path, tmp_path: Path) -> None:
    written, damaged = write_statistic_files(own_dump, tmp_path)
    assert len(written) == 2 and not damaged
    for path in written:
        assert path.read_bytes() == (own_dump / path.relative_to(tmp_path)).read_bytes()
    assert written[0].read_text().splitlines()[0] == ",".join(SEED_TITLES)
    with pytest.raises(ConfigError, match="expected a path for a new file"):
        write_statistic_files(own_dump, tmp_path)


def test_rows_of_a_csv_stand_in_for_tensors(tmp_path: Path) -> None:
    write_dump(tmp_path / "a", [("D/Add-op1", {IN: X, OUT: X})])
    (path,), _ = write_statistic_files(tmp_path / "a", tmp_path / "b")
    rows = tensor_statistics(path).rows
    assert [row.numbers for row in rows] == read_statistic_csv(path)


def test_nothing_and_damaged_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected tensors or statistics"):
        tensor_statistics(tmp_path)
    with pytest.raises(ConfigError, match="expected tensors"):
        write_statistic_files(tmp_path, tmp_path / "out")
    write_dump(tmp_path / "a", [("D/Add-op1", {IN: X, OUT: np.array([1j], np.complex64)})])
    victim = next((tmp_path / "a").rglob("*input*.npy"))
    victim.write_bytes(victim.read_bytes()[:-1])
    report = tensor_statistics(tmp_path / "a")
    assert not report.rows
    assert sorted("complex" in str(error) for _, error in report.damaged) == [False, True]


def test_parquet_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_dump(tmp_path / "a", [("D/Add-op1", {IN: X})])
    report = tensor_statistics(tmp_path / "a")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ConfigError, match="pip install pyarrow"):
        write_parquet(report, tmp_path / "x.parquet")


def test_parquet_holds_all_rows(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    write_dump(tmp_path / "a", [("D/Add-op1", {IN: X, OUT: floats(1, 2)})])
    write_parquet(tensor_statistics(tmp_path / "a"), tmp_path / "x.parquet")
    table = parquet.read_table(tmp_path / "x.parquet").to_pydict()
    assert table["op_name"] == ["Add-op1", "Add-op1"] and table["nan"] == [1, 0] and table["max"] == [2.5, 2.0]


def test_parquet_is_there_as_a_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    write_dump(tmp_path / "a", [("D/Add-op1", {IN: X})])
    report = tensor_statistics(tmp_path / "a")
    (tmp_path / "x.parquet").write_text("of before")

    def fail(table: object, path: str) -> None:
        Path(path).write_text("half of")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(parquet, "write_table", fail)
        with pytest.raises(ConfigError, match="No space left"):
            write_parquet(report, tmp_path / "x.parquet")
    assert (tmp_path / "x.parquet").read_text() == "of before"
    with pytest.raises(ConfigError, match="expected to write the table"):
        write_parquet(report, tmp_path / "x.parquet" / "x")
    write_parquet(report, tmp_path / "x.parquet")
    assert sorted(os.listdir(tmp_path)) == ["a", "x.parquet"]


def test_two_dumps_by_their_statistics(
    own_dump: Path, real_dump: Path, perturbed_dump: Path, fused_map: Path, tmp_path: Path
) -> None:
    write_statistic_files(real_dump, tmp_path / "real")
    write_statistic_files(perturbed_dump, tmp_path / "perturbed")
    found = compare_statistics(own_dump, tmp_path / "real", mapping=fused_map)
    assert found.is_agreeing and len(list(found.operators)) == 112
    changed = compare_statistics(tmp_path / "perturbed", own_dump)
    assert not changed.is_agreeing and changed.first_differing is not None
    assert changed.first_differing.pair.mine.op_name == "Conv2D-op3"
    assert changed.first_differing.inputs[1].reason.startswith("max ")


def test_nan_counts_and_digests_decide(tmp_path: Path) -> None:
    write_dump(tmp_path / "a", [("D/Add-op1", {IN: floats(1, 2), OUT: floats(1, 2)})])
    write_dump(tmp_path / "b", [("D/Add-op1", {IN: floats(1, 2), OUT: floats(2, 1)})])
    write_dump(tmp_path / "c", [("D/Add-op1", {IN: floats(1, 2), OUT: floats(1, math.nan)})])
    for name in "abc":
        write_statistic_files(tmp_path / name, tmp_path / f"s{name}")
    (same,) = compare_statistics(tmp_path / "sa", tmp_path / "sb").operators
    assert [tensor.status for tensor in same.tensors] == ["identical", "agrees"]
    found = compare_statistics(tmp_path / "sa", tmp_path / "sc")
    assert found.first_wrong is not None and found.first_wrong.outputs[0].reason == "nan 0 against 1"
    with pytest.raises(ConfigError, match=r"expected a statistic\.csv"):
        compare_statistics(tmp_path / "a", tmp_path / "sb")


def test_a_mapping_file_leaves_tensors_out(tmp_path: Path) -> None:
    """As it does for tensors themselves."""
    for name, value in (("a", 2), ("b", 3)):
        write_dump(tmp_path / name, [("D/Add-op1", {IN: floats(1, 2), OUT: floats(value, value)})])
        write_statistic_files(tmp_path / name, tmp_path / f"s{name}")
    (tmp_path / "map.json").write_text('{"ignore": ["Add:output"]}')
    assert not compare_statistics(tmp_path / "sa", tmp_path / "sb").is_agreeing
    (result,) = compare_statistics(tmp_path / "sa", tmp_path / "sb", mapping=tmp_path / "map.json").operators
    assert result.is_agreeing and result.outputs[0].reason == "the mapping file leaves it out"


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_dump(tmp_path / "a", [("D/Add-op1", {IN: X, OUT: X})])
    write_dump(tmp_path / "b", [("D/Add-op1", {IN: X, OUT: X * 2})])
    assert main(["stat", str(tmp_path / "a")]) == 0
    table, _, _ = capsys.readouterr().out.partition("\n\n")
    lines = table.splitlines()
    assert [line.split() for line in lines if not line.startswith(" ")] == [
        ["NaN", "Add-op1", "input", "0"],
        ["NaN", "Add-op1", "output", "0"],
    ]
    assert lines[1].split()[:8] == ["iteration", "0", "dtype", "float32", "shape", "4", "max", "2.5"]
    for name in "ab":
        assert main(["stat", str(tmp_path / name), "--csv", str(tmp_path / f"s{name}")]) == 0
    assert main(["stat", str(tmp_path / "sa"), "--diff", str(tmp_path / "sa")]) == 0
    capsys.readouterr()
    assert main(["stat", str(tmp_path / "sa"), "--diff", str(tmp_path / "sb")]) == 1
    assert capsys.readouterr().out.startswith("first wrong operator: Add-op1 (Add)")
    assert main(["stat", str(tmp_path / "missing")]) == 2
    assert main(["stat", str(tmp_path / "a"), "--csv", str(tmp_path / "x"), "--op-type", "Add"]) == 2


@pytest.mark.parametrize(
    "options",
    [(), ("--top", "1"), ("--csv", "csv"), ("--parquet", "all.parquet"), ("--unchanged",), ("--tables", "tables")],
    ids=" ".join,
)
def test_what_is_missing_is_said(
    options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    if options[:1] in (("--parquet",), ("--tables",)):
        pytest.importorskip("pyarrow")
    for iteration in range(2):
        for rank in range(2):
            rows = [("Parameter.w", {("output", 0): floats(1, iteration)}), ("D/Add-op1", {("output", 0): floats(1)})]
            write_dump(tmp_path / "dump", rows, iteration, rank=rank)
    command = ["stat", "dump", *options]
    assert main([*command, "--rank", "1"]) == 0
    write_lost(tmp_path / "dump/rank_0/.dump_metadata", Lost(3, "no room on the disk"))
    missing = "rank 0: the dump is not complete, 3 tensors lost: no room on the disk\n"
    for name in ("csv", "tables"):
        shutil.rmtree(name, ignore_errors=True)
    (tmp_path / "all.parquet").unlink(missing_ok=True)
    capsys.readouterr()
    assert main(command) == 4
    assert missing in capsys.readouterr().out
    if options in ((), ("--unchanged",)):
        assert main([*command, "--json", "-"]) == 4
        assert json.loads(capsys.readouterr().out)["lost"] == [
            {"rank": 0, "tensors": 3, "reason": "no room on the disk"}
        ]
        assert main([*command, "--rank", "1"]) == 0
        assert missing not in capsys.readouterr().out


def test_a_report_is_a_table_for_each_package(tmp_path: Path) -> None:
    write_dump(tmp_path, [("Net/fc-Dense/Add-op1", {IN: X, OUT: floats(1, 2)}), ("D/Mul-op2", {IN: X.reshape(2, 2)})])
    report = tensor_statistics(tmp_path)
    table = report.table()
    rows = dict(zip([column.name for column in table.columns], table.values, strict=True))
    assert table.row_count == 3 and rows["operator"] == [0, 0, 1] and rows["layer"] == ["Net.fc", "Net.fc", "D"]
    assert rows["shape"] == [[4], [2], [2, 2]] and rows["nan"] == [1, 0, 1] and rows["md5"] == [None] * 3
    for name, read in (("pyarrow", "to_arrow"), ("polars", "to_polars"), ("pandas", "to_pandas")):
        if importlib.util.find_spec(name) is not None:
            frame = getattr(report, read)()
            assert len(frame) == 3
            assert list(frame.column_names if name == "pyarrow" else frame.columns) == list(rows)
            assert [list(shape) for shape in _list(frame["shape"])] == rows["shape"]
            assert _list(frame["positive_inf"]) == [0, 0, 0]


def _list(column: Any) -> list[Any]:
    read = getattr(column, "to_pylist", None) or getattr(column, "to_list", None) or column.tolist
    return list(read())


@pytest.mark.parametrize("name", ["pyarrow", "polars", "pandas"])
def test_a_missing_package_is_named(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_dump(tmp_path, [("D/Add-op1", {IN: X})])
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        ConfigError, match=rf"expected the package {name}, got none\. Install it \(pip install {name}\)"
    ):
        getattr(tensor_statistics(tmp_path), f"to_{name.removeprefix('py')}")()
