"""The csv of an operator against numpy and against ACL's definitions, element by element."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from msdump.config.acl_rules import STATISTICS
from msdump.errors import FormatError
from msdump.formats import acl_stats_csv
from msdump.formats.acl_stats_csv import (
    DEFAULT_STATISTICS,
    TITLE_BY_STATISTIC,
    AclStatsWriter,
    format_value,
    read_acl_stats,
    stats_text,
    stats_titles,
)
from msdump.formats.dump_dir import DumpDir
from msdump.formats.writer import Writer
from msdump.statistics.stats import Statistics, statistics
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.records import INPUT, OUTPUT, TensorKey
from tests.contracts.writer_contract import Directory, WriterContract, record

NAME = "Add.op.1.2.1700000000000000.csv"
SIX = (
    "Input/Output,Index,Data Size,Data Type,Format,Shape,Max Value,Min Value,Avg Value,Count,Nan Count,"
    "Negative Inf Count,Positive Inf Count"
)


def cells(array: Array, dtype: str | None = None, chosen: Sequence[str] = STATISTICS, **changes: object) -> list[str]:
    """The only row of a csv, with all columns unless fewer are chosen."""
    dtype = dtype or dtypes.dtype_from_numpy(array.dtype).name
    lines = stats_text([record(data=array, dtype=dtype, **changes)], chosen).split("\n")
    assert len(lines) == 3 and lines[2] == ""
    return lines[1].split(",")


def by_definition(array: Array) -> tuple[str, str, float]:
    """Max, min and average as ACL computes them, one element after the other."""
    values = [value.item() for value in array.reshape(-1)]
    top = low = values[0]
    average = 0.0
    for number, value in enumerate(values):
        top = value if value > top else top
        low = value if value < low else low
        with np.errstate(all="ignore"):
            average = float(average + np.float64(float(value) - average) / (number + 1))
    if not any(map(math.isnan, values)) and (math.inf in values) != (-math.inf in values):
        average = math.inf if math.inf in values else -math.inf
    return format_value(top), format_value(low), average


FLOATS = [np.float16, np.float32, np.float64]
WHOLE = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.bool_]
small = hnp.array_shapes(min_dims=0, max_dims=3, max_side=5)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(FLOATS).flatmap(
        lambda dtype: hnp.arrays(
            dtype, small, elements=st.sampled_from([0.0, 1.5, -2.25, 100.0, math.nan, math.inf, -math.inf])
        )
    )
)
def test_floats_are_measured_as_defined(array: Array) -> None:
    row = cells(array)
    count, top, low, average, nan, negative_inf, positive_inf, norm = row[6:]
    expected_top, expected_low, expected_average = by_definition(array)
    assert (top, low) == (expected_top, expected_low)
    # The order of additions shows in the last of six digits at most.
    assert float(average) == pytest.approx(expected_average, rel=1e-5, nan_ok=True)
    assert count == str(array.size)
    if array.dtype == np.float64:
        assert {nan, negative_inf, positive_inf} == {"NA"}
    else:
        infinite = np.isinf(array)
        counts = np.isnan(array).sum(), (infinite & (array < 0)).sum(), (infinite & (array > 0)).sum()
        assert (nan, negative_inf, positive_inf) == tuple(map(str, counts))
    with np.errstate(all="ignore"):
        squares = np.square(array.astype(np.float64))
    expected = math.nan if np.isnan(array).any() else math.sqrt(squares.sum())
    assert norm == format_value(expected)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(WHOLE).flatmap(lambda dtype: hnp.arrays(dtype, small)))
def test_whole_numbers_are_printed_in_full(array: Array) -> None:
    row = cells(array)
    assert row[7:9] == [str(int(array.max())), str(int(array.min()))]
    assert float(row[9]) == pytest.approx(float(np.mean(array.astype(np.float64))), rel=1e-5, abs=1e-9)
    assert row[10:13] == ["NA"] * 3


@given(st.floats(width=64))
def test_six_significant_digits(value: float) -> None:
    text = format_value(value)
    assert text == ("nan" if math.isnan(value) else f"{value:.6g}")


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e6, "1e+06"), (123456.7, "123457"), (1e-5, "1e-05"), (0.1, "0.1"), (-math.inf, "-inf"), (2.0, "2")],
)
def test_numbers_look_as_streams_print_them(value: float, text: str) -> None:
    assert format_value(value) == text


@pytest.mark.parametrize("dtype", ["complex64", "int4", "float8_e5m2", "hifloat8", "uint1"])
def test_other_dtypes_have_no_numbers(dtype: str) -> None:
    array = np.zeros((2, 3), dtypes.dtype(dtype).numpy)
    size = {"complex64": "48", "int4": "3", "uint1": "1"}.get(dtype, "6")
    expected = ["Output", "0", size, f"DT_{dtype.upper()}", "ND", "2x3", "6"]
    assert cells(array, dtype) == [*expected, *["NA"] * 7]


@pytest.mark.parametrize(
    ("dtype", "name"),
    [("float32", "DT_FLOAT"), ("float64", "DT_DOUBLE"), ("bfloat16", "DT_BF16"), ("float16", "DT_FLOAT16"),
     ("int8", "DT_INT8"), ("uint64", "DT_UINT64"), ("bool", "DT_BOOL")],
)  # fmt: skip
def test_names_of_dtypes(dtype: str, name: str) -> None:
    assert cells(np.ones(2, dtypes.dtype(dtype).numpy), dtype)[3] == name


@pytest.mark.parametrize(
    ("shape", "text", "format_name"),
    [((), "-", "ND"), ((2, 3), "2x3", "ND"), ((1, 2, 3, 4), "1x2x3x4", "NCHW"), ((1,) * 25, "x".join("1" * 25), "ND"),
     ((1,) * 26, "NA", "ND"), ((0, 2), "0x2", "ND")],
)  # fmt: skip
def test_shapes(shape: tuple[int, ...], text: str, format_name: str) -> None:
    assert cells(np.zeros(shape, np.float32))[4:6] == [format_name, text]


def test_an_empty_tensor_has_counts_alone() -> None:
    assert cells(np.zeros((0,), np.float32))[6:] == ["0", "NA", "NA", "NA", "0", "0", "0", "0"]


@given(st.permutations(DEFAULT_STATISTICS))
def test_the_six_of_the_default_stand_around_the_count(chosen: list[str]) -> None:
    assert ",".join(stats_titles(tuple(chosen))) == SIX


@given(st.lists(st.sampled_from(STATISTICS), min_size=1, unique=True))
def test_any_other_choice_stands_behind_the_count(chosen: list[str]) -> None:
    titles = stats_titles(tuple(chosen))
    if set(chosen) != set(DEFAULT_STATISTICS):
        behind = [TITLE_BY_STATISTIC[name] for name in STATISTICS if name in chosen]
        assert titles == (*SIX.split(",")[:6], "Count", *behind)
    assert len(set(titles)) == len(titles)


def test_inputs_come_first() -> None:
    many = [record(io=OUTPUT, slot=0), record(io=INPUT, slot=1), record(io=INPUT, slot=0)]
    lines = stats_text(many, ["Max"]).split("\n")[1:-1]
    assert [line.split(",")[:2] for line in lines] == [["Input", "0"], ["Input", "1"], ["Output", "0"]]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(STATISTICS), min_size=1, unique=True),
    hnp.arrays(np.float32, small, elements=st.floats(-1e6, 1e6, width=32)),
)
def test_rows_are_read_back(chosen: list[str], array: Array) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / NAME
        path.write_text(stats_text([record(data=array)], chosen))
        [row] = read_acl_stats(path)
    assert (row.op_type, row.op_name, row.task_id, row.stream_id) == ("Add", "op", 1, 2)
    assert (row.dtype, row.shape, row.size_bytes, row.count) == ("float32", array.shape, array.nbytes, array.size)
    assert (row.max is not None) == ("Max" in chosen) and (row.l2norm is not None) == ("L2norm" in chosen)
    if row.max is not None:
        assert row.max == float(f"{array.max():g}")
    assert row.nan == (0 if "Nan" in chosen else None)


@pytest.mark.parametrize(
    "text",
    [f"{SIX}\nSideways,0,4,DT_FLOAT,ND,1,1,1,1,1,0,0,0\n", f"{SIX}\nInput,zero,4,DT_FLOAT,ND,1,1,1,1,1,0,0,0\n",
     "a,b\n1,2\n", f"{SIX}\nInput,0,4,DT_FLOAT,ND,1y2,1,1,1,1,0,0,0\n", "\udcff\n"],
)  # fmt: skip
def test_damaged_files_are_refused_by_line(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(FormatError, match=r"line 2|expected csv"):
        read_acl_stats(tmp_path / NAME)


def test_a_file_with_another_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(SIX + "\n")
    with pytest.raises(FormatError, match="name of a dump file"):
        read_acl_stats(tmp_path / "x.csv")
    assert read_acl_stats(tmp_path / "x.csv", NAME) == []


def test_what_operators_share_is_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[int] = []

    def count(array: Array, dtype: str) -> Statistics:
        measured.append(array.size)
        return statistics(array, dtype)

    monkeypatch.setattr(acl_stats_csv, "statistics", count)
    shared, own = np.arange(3.0, dtype=np.float32), np.arange(4.0, dtype=np.float32)
    writer = AclStatsWriter(lambda _: tmp_path)
    for iteration in range(2):
        for index in range(3):
            key = TensorKey(7, 0)
            writer.write(
                [
                    record(2 * (3 * iteration + index), io=INPUT, data=shared, key=key, iteration=iteration),
                    record(2 * (3 * iteration + index), data=own, iteration=iteration),
                ]
            )
        writer.end_iteration(0, iteration)
    writer.close()
    assert sorted(measured) == [3] * 2 + [4] * 6
    rows = [row for path in tmp_path.iterdir() for row in read_acl_stats(path)]
    assert {(row.io, row.max) for row in rows} == {("input", 2.0), ("output", 3.0)}
    assert len(rows) == 12


def test_constants_are_measured_once_for_all_iterations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[int] = []

    def counting(array: Array, dtype: str) -> Statistics:
        measured.append(array.size)
        return statistics(array, dtype)

    monkeypatch.setattr(acl_stats_csv, "statistics", counting)
    writer = AclStatsWriter(lambda _: tmp_path)
    texts = []
    for iteration in range(3):
        operands = [
            record(
                iteration,
                io=INPUT,
                slot=slot,
                data=np.full(size, number, np.float32),
                key=TensorKey(slot, 0),
                iteration=iteration,
            )
            for slot, (size, number) in enumerate([(3, 7), (4, iteration)])
        ]
        # The same keys in another graph are other tensors.
        for graph_id in range(2):
            found = [replace(one, graph_id=graph_id, is_constant=one.slot == 0) for one in operands]
            texts.append(writer.content(found)[0])
            writer.end_iteration(graph_id, iteration)
    assert measured == [3, 4, 3, 4, 4, 4, 4, 4]
    assert [bytes(text).decode().splitlines()[2].split(",")[6] for text in texts] == ["0", "0", "1", "1", "2", "2"]
    assert {bytes(text).decode().splitlines()[1].split(",")[6] for text in texts} == {"7"}


class TestAclStatsWriter(WriterContract):
    def open_writer(self, directory: Directory) -> Writer:
        return AclStatsWriter(directory)

    def count_on_disk(self, root: Path) -> int:
        return sum(len(read_acl_stats(path, name)) for _, path, name in DumpDir.open(root).statistic_dump_files())

    def stored_dtypes(self) -> list[str] | None:
        return [row.name for row in dtypes.TABLE if row.numpy_type is not None]
