"""statistic.csv: columns and number texts of the seed, one measurement per distinct tensor, errors that name lines."""

from __future__ import annotations

import csv
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import ConfigError, FormatError, WriteError
from msdump.formats.paths.sync import record_op_name, safe_op_type
from msdump.formats.statistic_csv import SEED_TITLES, StatisticWriter, format_number, read_statistic_csv
from msdump.formats.statistic_row import StatisticRow
from msdump.formats.writer import Writer
from msdump.statistics import batches
from msdump.statistics.md5 import md5_hex
from msdump.statistics.stats import statistics
from msdump.tensors import dtypes
from msdump.tensors.records import INPUT, OUTPUT, TensorKey, TensorRecord
from msdump.testing import records
from tests.contracts.writer_contract import FIRST_US, Directory, WriterContract, by_iteration, record

GOLDEN = Path(__file__).parents[1] / "golden" / "sync" / "statistic.csv"
HEADER = ",".join(SEED_TITLES)
quick = settings(max_examples=40, deadline=None)


class TestStatisticWriter(WriterContract):
    def open_writer(self, directory: Directory) -> Writer:
        return StatisticWriter(directory)

    def count_on_disk(self, root: Path) -> int:
        return sum(len(read_statistic_csv(path)) for path in root.rglob("*.csv"))


def write(root: Path, made: list[TensorRecord], categories: list[str] | None = None) -> str:
    writer = StatisticWriter(lambda record: root, categories)
    writer.write(made)
    writer.close()
    return (root / "statistic.csv").read_text(encoding="utf-8")


def additions() -> list[TensorRecord]:
    left = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    right = left + 6
    operands = [(INPUT, 0, left), (INPUT, 1, right), (OUTPUT, 0, left + right)]
    return [
        record(index, op_type="Add", op_name="Default/Add-op1", io=io, slot=slot, data=data)
        for index, (io, slot, data) in enumerate(operands)
    ]


def test_bytes_of_the_seed_era(tmp_path: Path) -> None:
    assert write(tmp_path, additions()) == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("axes", [(1, 0, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)])
def test_a_transpose_says_what_its_tensor_says(
    axes: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = np.random.default_rng(0).normal(size=(5, 64, 300)).astype(np.float32)
    gaps = np.repeat(whole, 2, axis=2)[..., ::2]
    asked: list[int] = []
    monkeypatch.setattr(batches, "statistics", lambda data, dtype: asked.append(data.nbytes) or statistics(data, dtype))
    made = [
        record(index, data=data, key=TensorKey(index, 0))
        for index, data in enumerate([whole, whole.transpose(axes), gaps, gaps.transpose(axes)])
    ]
    write(tmp_path, made, ["max", "min", "avg", "l2norm", "count", "zero count"])
    first, *others = read_statistic_csv(tmp_path / "statistic.csv")
    assert len(asked) == 3
    for other, expected in zip(others, made[1:], strict=True):
        assert other.shape == expected.shape
        assert (other.max, other.min, other.count, other.zero) == (first.max, first.min, first.count, first.zero)
        assert (other.avg, other.l2norm) == (pytest.approx(first.avg, abs=1e-6), pytest.approx(first.l2norm))


def test_only_memory_without_gaps_counts_as_the_same() -> None:
    whole = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    filled = record(0, data=whole).filled_memory
    assert filled is not None
    assert record(0, data=whole.transpose(2, 0, 1)).filled_memory == filled
    assert record(0, data=whole.reshape(6, 4)).filled_memory == filled
    for other in (whole[:1], whole[..., :2], whole[:, ::2], np.broadcast_to(whole[0], (2, 3, 4)), whole.copy()):
        assert record(0, data=other).filled_memory != filled
    assert record(0, data=whole.view(np.int32), dtype="int32").filled_memory != filled


def test_chosen_columns_end_each_row_with_one_more_comma(tmp_path: Path) -> None:
    """Source: MindSpore 2.3.0 and later."""
    text = write(tmp_path, additions()[:1], ["l2norm", "max"])
    header, row, end = text.split("\n")
    assert header.endswith("Shape,Max Value,L2Norm Value") and not end
    assert row.endswith('"(2,3)",6,9.53939,')
    (parsed,) = read_statistic_csv(tmp_path / "statistic.csv")
    assert (parsed.max, parsed.l2norm, parsed.min, parsed.md5) == (6.0, 9.53939, None, None)


def test_unknown_columns_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"statistic_category: expected some of .*, got \['median'\]"):
        StatisticWriter(lambda record: tmp_path, ["max", "Median"])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (6.0, "6"),
        (0.1, "0.1"),
        (1e-7, "1e-07"),
        (1234567, "1.23457e+06"),
        (-0.25, "-0.25"),
        (None, "null"),
        (2**64 - 1, "1.84467e+19"),
    ],
)
def test_numbers_look_like_those_of_a_c_stream(value: float | None, text: str) -> None:
    assert format_number(value) == text


@quick
@given(records())
def test_rows_say_what_the_tensors_are(made: list[TensorRecord]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        if not made:
            return
        write(Path(folder), made)
        rows = read_statistic_csv(Path(folder, "statistic.csv"))
        assert len(rows) == len(made)
        for row, item in zip(rows, made, strict=True):
            numbers = statistics(item.data, item.dtype)
            assert (row.op_type, row.op_name) == (safe_op_type(item.op_type), record_op_name(item))
            assert (row.task_id, row.stream_id, row.timestamp_us) == (item.task_id, item.stream_id, item.timestamp_us)
            assert (row.io, row.slot, row.dtype, row.shape) == (item.io, item.slot, item.dtype, item.shape)
            assert row.size_bytes == item.data.size * dtypes.dtype(item.dtype).itemsize
            for name in ("count", "negative", "positive", "zero", "nan", "negative_inf", "positive_inf"):
                assert getattr(row, name) == getattr(numbers, name)
            for name in ("max", "min", "avg"):
                exact = getattr(numbers, name)
                assert getattr(row, name) == (None if exact is None else pytest.approx(exact, rel=1e-5))
            assert row.md5 == md5_hex(item.data)


def test_each_distinct_tensor_is_measured_once_per_iteration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = []

    def count(array: np.ndarray, dtype: str) -> object:
        measured.append(array.shape)
        return statistics(array, dtype)

    monkeypatch.setattr(batches, "statistics", count)
    key, data = TensorKey(1, 0), np.arange(6, dtype=np.float32)
    writer = StatisticWriter(by_iteration(tmp_path))
    writer.write([record(0, key=key, data=data), record(1, key=key, data=data.reshape(2, 3))])
    writer.write([record(2, key=key, data=data), record(3, key=TensorKey(1, 1), data=data)])
    writer.write([record(4, key=key, data=data + 1, iteration=1)])
    writer.close()
    assert measured == [(6,), (6,), (6,)]
    shapes = [row.shape for row in read_statistic_csv(tmp_path / "0" / "0" / "statistic.csv")]
    assert shapes == [(6,), (2, 3), (6,), (6,)]
    (changed,) = read_statistic_csv(tmp_path / "0" / "1" / "statistic.csv")
    assert changed.max == 6.0


def test_large_tensors_are_digested_beside_and_come_out_in_order(tmp_path: Path) -> None:
    arrays = [np.full(100_000 + index, index, np.float32) for index in range(5)]
    made = [record(index, data=array, key=TensorKey(index % 3, 0)) for index, array in enumerate(arrays)]
    made[3], made[4] = record(3, data=arrays[0], key=TensorKey(0, 0)), record(4, data=arrays[1], key=TensorKey(1, 0))
    write(tmp_path, made)
    rows = read_statistic_csv(tmp_path / "statistic.csv")
    assert [row.md5 for row in rows] == [md5_hex(item.data) for item in made]


def test_a_later_run_appends_under_the_same_header(tmp_path: Path) -> None:
    write(tmp_path, additions()[:1])
    text = write(tmp_path, additions()[1:])
    assert text == GOLDEN.read_text(encoding="utf-8")
    with pytest.raises(WriteError, match=r"expected the columns .* of an earlier run"):
        write(tmp_path, additions(), ["max"])
    assert (tmp_path / "statistic.csv").read_text(encoding="utf-8") == text


def test_names_with_commas_stay_one_column(tmp_path: Path) -> None:
    text = write(tmp_path, [record(op_name='a,"b",c', is_parameter=True)])
    assert next(csv.reader(text.split("\n")[1:]))[1] == 'a,"b",c'


# -- hostile files -------------------------------------------------------------------------------------------------


def read(data: bytes) -> list[StatisticRow]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "statistic.csv")
        path.write_bytes(data)
        return read_statistic_csv(path)


def test_older_and_newer_columns_are_found_by_title() -> None:
    data = (
        GOLDEN.read_bytes()
        .replace(b"Zero Count,MD5", b"Zero Count,L2 Value,New Column")
        .replace(b",0,fa8", b",0,2.5,fa8")
    )
    row = read(data.split(b"\nAdd,Add-op1,0,0,1700000000000001")[0] + b"\n")[0]
    assert (row.l2norm, row.md5, row.max) == (2.5, None, 6.0)


@quick
@given(st.integers(0, GOLDEN.stat().st_size))
def test_every_prefix_gives_its_whole_lines(length: int) -> None:
    data = GOLDEN.read_bytes()
    assert read(data[:length]) == read(data)[: max(0, data[:length].count(b"\n") - 1)]


@settings(max_examples=150, deadline=None)
@given(st.integers(0, GOLDEN.stat().st_size - 1), st.integers(1, 255))
def test_a_flipped_byte_gives_rows_or_a_format_error(place: int, flip: int) -> None:
    data = bytearray(GOLDEN.read_bytes())
    data[place] ^= flip
    try:
        rows = read(bytes(data))
    except FormatError as error:
        assert "statistic.csv" in str(error)  # noqa: PT017
    else:
        assert len(rows) <= 3


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"Slot", b"Slit", r"line 1: expected the columns .* none named \['Slot'\]"),
        (b",24,", b",two,", "line 2, column Data Size: expected a whole number, got 'two'"),
        (b",3.5,", b",x,", "line 2, column Avg Value: expected a number or null, got 'x'"),
        (b'"(2,3)"', b'"2,3"', "line 2, column Shape: expected a shape"),
        (b"input,0", b"inout,0", "line 2, column IO: expected input or output"),
        (b"Add,Add-op1", b"Add", "line 2: expected 21 values, got 20"),
        (b"Add-op1", b"\xff", "expected UTF-8 text"),
    ],
)
def test_what_is_wrong_is_named(old: bytes, new: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read(GOLDEN.read_bytes().replace(old, new, 1))


def test_time_stamps_of_the_golden_file_are_those_of_the_cases() -> None:
    assert [row.timestamp_us for row in read_statistic_csv(GOLDEN)] == [FIRST_US, FIRST_US + 1, FIRST_US + 2]


def test_a_large_tensor_of_two_records_is_digested_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def count(arrays: list[np.ndarray]) -> list[str]:
        seen.extend(array.size for array in arrays)
        return [md5_hex(array) for array in arrays]

    monkeypatch.setattr(batches, "md5_many", count)
    array = np.zeros(100_000, np.float32)
    write(tmp_path, [record(number, data=array, key=TensorKey(0, 0)) for number in range(3)])
    assert seen == [array.size]


def test_nothing_is_read_any_more_when_a_write_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The arrays belong to the caller again."""
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def slow(arrays: list[np.ndarray]) -> list[str]:
        begun.set()
        may_end.wait(60)
        ended.set()
        return ["" for _ in arrays]

    def fail(*_: object) -> None:
        begun.wait(60)
        # The writer waits for the digest by now, or is about to return without.
        threading.Timer(0.2, may_end.set).start()
        raise WriteError("no")

    monkeypatch.setattr(batches, "md5_many", slow)
    monkeypatch.setattr(batches, "statistics", fail)
    writer = StatisticWriter(lambda record: tmp_path, thread_count=2)
    with pytest.raises(WriteError):
        writer.write([record(0, data=np.zeros(100_000, np.float32), key=TensorKey(0, 0))])
    writer.close()
    assert ended.is_set()
