"""MindRecord files. MindSpore 2.0 and 2.7 read what msdump writes; GOLDEN is what MindSpore 2.7 wrote."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from msdump.mindspore import dataset as ds
from msdump.mindspore.dataset.rows import Pass
from msdump.mindspore.mindrecord import FileReader, FileWriter, layout
from msdump.mindspore.mindrecord.exceptions import (
    MindRecordException,
    MRMFetchDataError,
    MRMOpenError,
    ParamTypeError,
    ParamValueError,
)
from msdump.mindspore.mindrecord.reader import record_files

quick = settings(max_examples=20, deadline=None)
SCHEMA = {
    "name": {"type": "string"},
    "label": {"type": "int32"},
    "score": {"type": "float64"},
    "data": {"type": "bytes"},
    "vec": {"type": "int64", "shape": [-1]},
    "mat": {"type": "float32", "shape": [2, -1]},
}
# A row of SCHEMA as MindSpore 2.7 stores it: raw part, blob part.
GOLDEN = (
    {"file_name": "f1.jpg", "label": 10, "score": 1.5},
    "83a966696c655f6e616d65a666312e6a7067a56c6162656c0aa573636f7265ca3fc00000",
)


def row(number: int) -> dict[str, Any]:
    return {
        "name": f"n{number}é",
        "label": number - 2,
        "score": number / 3,
        "data": bytes(range(number + 1)),
        "vec": np.arange(number + 1) - 300,
        "mat": np.full((2, 3), number, np.float32),
    }


def written(path: Path, count: int, shards: int = 1, page_size: int | None = None) -> str:
    writer = FileWriter(str(path), shards)
    if page_size is not None:
        writer.set_header_size(1 << 14)
        writer.set_page_size(page_size)
    writer.add_schema(SCHEMA, "rows")
    writer.write_raw_data([row(number) for number in range(count)])
    writer.commit()
    return str(path) if shards == 1 else f"{path}0"


def read_rows(name: str) -> list[dict[str, Any]]:
    return [file.row(number) for file in record_files("file_name", name) for number in range(len(file))]


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def test_rows_come_back(tmp_path: Path) -> None:
    rows = read_rows(written(tmp_path / "a", 5))
    assert list(rows[0]) == ["data", "label", "mat", "name", "score", "vec"]
    assert len(rows) == 5
    assert all(same(got, row(number)) for number, got in enumerate(rows))
    assert rows[0]["vec"].dtype == np.int64


def test_many_pages_and_shards(tmp_path: Path) -> None:
    writer = FileWriter(str(tmp_path / "p"), 3)
    writer.set_header_size(1 << 14)
    writer.set_page_size(1 << 14)
    writer.add_schema({"d": {"type": "bytes"}, "n": {"type": "int32"}})
    for first in (0, 10):
        writer.write_raw_data([{"d": bytes([n]) * 6000, "n": n} for n in range(first, first + 10)])
    writer.commit()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p0", "p0.db", "p1", "p1.db", "p2", "p2.db"]
    rows = read_rows(str(tmp_path / "p1"))
    assert [got["n"] for got in rows] == [0, 1, 2, 10, 11, 12, 3, 4, 5, 13, 14, 15, 6, 7, 8, 9, 16, 17, 18, 19]
    assert all(got["d"] == bytes([got["n"]]) * 6000 for got in rows)
    big = FileWriter(str(tmp_path / "big"))
    big.set_page_size(1 << 14)
    big.add_schema({"d": {"type": "bytes"}})
    with pytest.raises(MindRecordException, match="rows of at most 16384 bytes, got 16385"):
        big.write_raw_data([{"d": bytes((1 << 14) - 7)}])


@quick
@given(
    values=hnp.arrays(np.int64, st.integers(1, 20), elements=st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300))
)
def test_ints_are_narrow_and_come_back(values: Any) -> None:
    data = layout.narrowed(values)
    np.testing.assert_array_equal(layout.widened(data), values)
    with pytest.raises(MRMFetchDataError):
        layout.widened(data[:-1])


@quick
@given(
    values=st.dictionaries(
        st.text("abcé_", min_size=1, max_size=40),
        st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=300),
        min_size=1,
        max_size=20,
    ),
    cut=st.integers(1, 5),
)
def test_single_values_come_back(values: dict[str, Any], cut: int) -> None:
    data = layout.packed(values)
    assert layout.unpacked(data) == values
    with pytest.raises(MRMFetchDataError):
        layout.unpacked(data[:-cut])


def test_bytes_are_those_of_mindspore() -> None:
    values, raw = GOLDEN
    assert layout.packed(values).hex() == raw
    assert layout.narrowed(np.array([300, -70000])).hex() == "00000002602c0190eefeff"
    assert layout.narrowed(np.array([0, 1, 2])).hex() == "0000000300000102"
    assert layout.blob_of([b"\1", b"\2\3"]).hex() == "000000000000000101" + "00000000000000020203"


def test_dataset_of_records(tmp_path: Path) -> None:
    name = written(tmp_path / "a", 6, shards=2)
    dataset = ds.MindDataset(name, shuffle=False)
    assert dataset.get_col_names() == ["data", "label", "mat", "name", "score", "vec"]
    rows = list(dataset.create_dict_iterator(num_epochs=1, output_numpy=True))
    assert [int(got["label"]) for got in rows] == [-2, -1, 0, 1, 2, 3]
    assert (rows[2]["data"].dtype, rows[2]["data"].tolist()) == (np.uint8, [0, 1, 2])
    assert (rows[2]["mat"].shape, rows[2]["label"].dtype, str(rows[2]["name"])) == ((2, 3), np.int32, "n2é")

    def labels(**arguments: Any) -> list[int]:
        chosen = ds.MindDataset(name, ["label"], **arguments)
        found = [int(got()[0]) for got in chosen.rows(Pass(3))]
        assert len(found) == chosen.get_dataset_size()
        return found

    assert labels(sampler=ds.SubsetSampler([3, 1])) == [1, -1]
    padding = {"padded_sample": {"label": 99}, "num_padded": 2}
    shards = [labels(shuffle=False, num_shards=2, shard_id=shard, **padding) for shard in range(2)]
    assert shards == [[-2, 0, 2, 99], [-1, 1, 3, 99]]
    assert sorted(labels()) == sorted(labels(shuffle=ds.Shuffle.GLOBAL)) == list(range(-2, 4))
    assert labels(shuffle=ds.Shuffle.FILES) in ([-2, -1, 0, 1, 2, 3], [1, 2, 3, -2, -1, 0])
    within = labels(shuffle=ds.Shuffle.INFILE)
    assert (sorted(within[:3]), sorted(within[3:])) == ([-2, -1, 0], [1, 2, 3])
    with pytest.raises(RuntimeError, match="expected columns of"):
        ds.MindDataset(name, ["zz"])


def test_save_and_read_again(tmp_path: Path) -> None:
    data = {
        "a": np.arange(3),
        "b": np.ones((3, 2), np.float16),
        "s": ["x", "yy", "z"],
        "u": np.arange(3, dtype=np.uint8),
    }
    ds.NumpySlicesDataset(data, shuffle=False).save(str(tmp_path / "saved"))
    again = ds.MindDataset(str(tmp_path / "saved"), shuffle=False)
    rows = [[value.tolist() for value in got()] for got in again.rows(Pass(0))]
    assert rows == [[n, [1.0, 1.0], ["x", "yy", "z"][n], n] for n in range(3)]
    assert again.output_types() == [np.int64, np.float32, np.dtype("<U1"), np.int32]


@pytest.mark.parametrize(
    ("schema", "bad"),
    [
        ({"a": {"type": "foo"}}, None),
        ({"a": {"type": "string", "shape": [2]}}, None),
        ({"a b": {"type": "int32"}}, None),
        ({"a": {"type": "int32"}}, {"a": "x"}),
        ({"a": {"type": "int32"}}, {"a": 1 << 31}),
        ({"a": {"type": "int32"}}, {"b": 1}),
        ({"a": {"type": "int64", "shape": [2]}}, {"a": np.arange(3)}),
        ({"a": {"type": "int64", "shape": [2]}}, {"a": np.arange(2, dtype=np.int32)}),
        ({"a": {"type": "bytes"}}, {"a": "text"}),
    ],
)
def test_schemas_and_rows_that_do_not_fit(tmp_path: Path, schema: dict[str, Any], bad: dict[str, Any] | None) -> None:
    writer = FileWriter(str(tmp_path / "a"))
    if bad is None:
        with pytest.raises(MindRecordException, match=r"expected .*, got"):
            writer.add_schema(schema)
        return
    writer.add_schema(schema)
    with pytest.raises(MindRecordException, match=r"expected .*, got"):
        writer.write_raw_data([bad])
    assert not (tmp_path / "a").exists()


def test_what_is_there_stays(tmp_path: Path) -> None:
    written(tmp_path / "a", 1)
    with pytest.raises(MRMOpenError, match="overwrite=True"):
        FileWriter(str(tmp_path / "a"))


@quick
@given(cut=st.integers(0, 16500))
def test_files_cut_short_are_refused(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    folder = tmp_path_factory.mktemp("cut")
    name = written(folder / "a", 2, page_size=1 << 14)
    data = (folder / "a").read_bytes()
    (folder / "a").write_bytes(data[: len(data) - 1 - cut])
    with pytest.raises(MindRecordException, match=r"expected"):
        read_rows(name)


def test_indexes_of_strangers_are_refused(tmp_path: Path) -> None:
    name = written(tmp_path / "a", 2, page_size=1 << 14)
    with sqlite3.connect(f"{name}.db") as connection:
        connection.execute("UPDATE INDEXES SET PAGE_OFFSET_RAW_END = 1000000000")
    connection.close()
    with pytest.raises(MRMOpenError, match="row 0: expected bytes"):
        read_rows(name)
    Path(f"{name}.db").write_bytes(b"no database")
    with pytest.raises(MRMOpenError, match="expected the index"):
        read_rows(name)
    Path(f"{name}.db").unlink()
    with pytest.raises(ValueError, match="expected the file"):
        read_rows(name)


def test_a_reader_gives_rows_in_order(tmp_path: Path) -> None:
    reader = FileReader(written(tmp_path / "a", 5))
    rows = list(reader.get_next())
    assert [row["label"] for row in rows] == [-2, -1, 0, 1, 2] and reader.len() == 5
    assert list(rows[0]) == ["label", "name", "score", "data", "mat", "vec"]
    assert list(next(FileReader(str(tmp_path / "a"), columns=["vec", "name"]).get_next())) == ["vec", "name"]
    assert reader.schema()["label"] == {"type": "int32"}
    for columns, error in (("name", ParamTypeError), (["names"], ParamValueError)):
        with pytest.raises(error):
            FileReader(str(tmp_path / "a"), columns=columns)
