"""npy: bytes as MindSpore's, one write per distinct tensor, a reader that believes nothing."""

from __future__ import annotations

import ast
import errno
import io
import os
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from msdump import testing
from msdump.analysis.convert._tensor_form import DecodedTensor, npy_chunks
from msdump.errors import DtypeError
from msdump.formats.dump_dir import DumpDir
from msdump.formats.npy import NpyWriter, dtype_of_mark, mark_of, npy_array, npy_header, numpy_chunks, with_mark
from msdump.formats.npy_reader import read_npy, scan_npy
from msdump.formats.paths.sync import MAPPING_FILE, data_file_name, parse_data_file_name
from msdump.formats.sidecars import read_mapping
from msdump.formats.writer import Writer
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.records import OUTPUT, TensorKey, TensorRecord
from msdump.testing import assert_same_array, records, shapes, tensors
from tests.contracts.writer_contract import Directory, WriterContract, by_iteration, record

GOLDEN = Path(__file__).parents[1] / "golden" / "sync"
STORED = sorted(name for name in dtypes.BY_NAME if dtypes.dtype(name).kind != dtypes.OTHER)
quick = settings(max_examples=40, deadline=None)


class TestNpyWriter(WriterContract):
    def open_writer(self, directory: Directory) -> Writer:
        return NpyWriter(directory)

    def count_on_disk(self, root: Path) -> int:
        return sum(read_npy(path).ndim >= 0 for path in root.rglob("*.npy"))


@quick
@given(records(dtypes=STORED))
def test_what_is_read_is_what_was_written(made: list[object]) -> None:
    """Bit for bit, but for the widening that the dtype table declares; under the name that layout.py makes."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        writer = NpyWriter(lambda record: root)
        writer.write(made)  # type: ignore[arg-type]
        writer.close()
        mapping = read_mapping(root / MAPPING_FILE) if (root / MAPPING_FILE).exists() else {}
        mapped_by_original = {original: mapped for mapped, original in mapping.items()}
        assert len(list(root.glob("*.npy"))) == len(made)
        for item in made:
            name = data_file_name(item)  # type: ignore[arg-type]
            path = root / mapped_by_original.get(name, name)
            assert_same_array(read_npy(path), npy_array(item.data, item.dtype))  # type: ignore[attr-defined]


@quick
@given(tensors(dtypes=STORED))
def test_header_is_one_that_numpy_reads(array: Array) -> None:
    name = dtypes.dtype_from_numpy(array.dtype).name
    stored = npy_array(array, name)
    header = npy_header(name, array.shape)
    assert len(header) % 64 == 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.npy")
        path.write_bytes(header + stored.tobytes())
        assert_same_array(np.load(path), stored)


@quick
@given(tensors(dtypes=["bfloat16", "float8_e4m3fn", "float4_e2m1"]))
def test_widening_keeps_every_value(array: Array) -> None:
    stored = npy_array(array, dtypes.dtype_from_numpy(array.dtype).name)
    assert stored.dtype == np.float32
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(stored, array.astype(np.float64))


@quick
@given(tensors(dtypes=["float32", "int64", "bool"], shapes=shapes(3, 4)), st.booleans())
def test_files_of_numpy_are_read(array: Array, mmap: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.npy")
        np.save(path, array)
        assert_same_array(read_npy(path, mmap), array)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.npy")), ids=lambda path: path.name)
def test_files_of_mindspore_are_written_byte_for_byte(path: Path, tmp_path: Path) -> None:
    array = read_npy(path)
    name = parse_data_file_name(path.name)
    assert name is not None
    writer = NpyWriter(lambda record: tmp_path)
    writer.write(
        [
            record(
                op_type=name.op_type,
                op_name=name.op_name,
                timestamp_us=name.timestamp_us,
                io=name.io,
                slot=name.slot,
                dtype=dtypes.dtype_from_numpy(array.dtype).name,
                data=array,
                is_parameter=name.op_type == "Parameter",
            )
        ]
    )
    writer.close()
    assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_shared_tensors_are_written_once(tmp_path: Path) -> None:
    """Same key in the same iteration: one file with two names. Another iteration, shape or graph: another file."""
    writer = NpyWriter(by_iteration(tmp_path))
    key = TensorKey(7, 0)
    data = np.arange(6, dtype=np.float32)
    writer.write([record(0, key=key, data=data), record(1, key=key, data=data)])
    writer.write([record(2, key=key, data=data.reshape(2, 3)), record(3, key=key, data=data, graph_id=1)])
    writer.write([record(4, key=key, data=data + 1, iteration=1)])
    writer.close()
    links = {path.name.split(".")[1]: path.stat().st_nlink for path in tmp_path.rglob("*.npy")}
    assert links == {"ReLU-op0": 2, "ReLU-op1": 2, "ReLU-op2": 1, "ReLU-op3": 1, "ReLU-op4": 1}
    assert (writer.counts.files, writer.counts.links) == (4, 1)
    (last,) = (tmp_path / "0" / "1").glob("*.npy")
    assert read_npy(last).tolist() == [1, 2, 3, 4, 5, 6]


def test_where_links_are_refused_copies_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def refuse(source: str, *args: object, **options: object) -> None:
        if str(source).startswith("/proc/"):
            link(source, *args, **options)  # type: ignore[arg-type]
        else:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    writer = NpyWriter(by_iteration(tmp_path))
    key = TensorKey(7, 0)
    writer.write([record(index, key=key) for index in range(3)])
    writer.close()
    files = list(tmp_path.rglob("*.npy"))
    assert [path.stat().st_nlink for path in files] == [1, 1, 1]
    assert len({path.read_bytes() for path in files}) == 1
    assert (writer.counts.files, writer.counts.links) == (3, 0)
    assert writer.counts.bytes_written == writer.counts.bytes_named == sum(path.stat().st_size for path in files)


def test_long_names_become_numbers(tmp_path: Path) -> None:
    """Names that agree in their first 255 bytes must not collide; 255 bytes themselves still fit."""
    long_name = "网" * 100
    writer = NpyWriter(by_iteration(tmp_path))
    fitting = 255 - len(data_file_name(record(op_name="", is_parameter=True, op_type="P")).encode()) + 1
    made = [
        record(0, op_name=long_name + "a", is_parameter=True, key=TensorKey(1, 0)),
        record(1, op_name=long_name + "b", is_parameter=True, key=TensorKey(1, 0)),
        record(2, op_name="x" * fitting, is_parameter=True, op_type="P"),
    ]
    writer.write(made)
    writer.close()
    folder = tmp_path / "0" / "0"
    mapping = read_mapping(folder / MAPPING_FILE)
    assert sorted(mapping.values()) == sorted(data_file_name(item) for item in made[:2])
    assert all(name.removesuffix(".npy").isdigit() for name in mapping)
    assert sorted(path.name for path in folder.glob("*.npy")) == sorted([*mapping, data_file_name(made[2])])
    assert (folder / MAPPING_FILE).stat().st_mode & 0o777 == 0o400


def test_hifloat8_is_refused() -> None:
    with pytest.raises(DtypeError, match="hifloat8"):
        npy_array(np.zeros(2, np.uint8), "hifloat8")


# -- hostile files -------------------------------------------------------------------------------------------------


NAMES = [row.name for row in dtypes.TABLE if row.numpy_type is not None and row.kind != dtypes.OTHER]
MARKED = ["bfloat16", "float8_e5m2", "float8_e4m3fn", "float8_e8m0", "float6_e3m2", "float6_e2m3", "float4_e2m1"]
SHAPES = hnp.array_shapes(min_dims=0, max_dims=9, min_side=0, max_side=2)


def read(data: bytes) -> tuple[Array, str | None]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.npy")
        path.write_bytes(data)
        array, original = read_npy(path, mmap=False), scan_npy(str(path))[0].original
        testing.assert_same_array(np.load(path), array)
        return array, original


@given(st.sampled_from(NAMES), SHAPES)
def test_every_writer_tells_it_and_numpy_reads_the_file(name: str, shape: tuple[int, ...]) -> None:
    stored = npy_array(np.zeros(shape, dtypes.dtype(name).numpy), name)
    files = [
        npy_header(name, shape) + stored.tobytes(),
        b"".join(map(bytes, numpy_chunks(stored, name))),
        b"".join(map(bytes, npy_chunks(DecodedTensor(np.zeros(shape, dtypes.dtype(name).numpy), name)))),
    ]
    for data in files:
        array, original = read(data)
        testing.assert_same_array(array, stored)
        assert original == (name if name in MARKED else None)
        length = int.from_bytes(data[8:10], "little")
        assert (10 + length) % 64 == 0 and data[9 + length : 10 + length] == b"\n"
        # Also a reader that takes nothing but blanks for padding sees no more than the dictionary.
        assert set(ast.literal_eval(data[10 : 10 + length].decode())) == {"descr", "fortran_order", "shape"}


@given(st.sampled_from(MARKED), st.integers(0, 200), st.integers(1, 120))
def test_a_header_grows_only_where_its_padding_is_too_short(name: str, text_length: int, blanks: int) -> None:
    text = b"{" + b"x" * text_length + b"}"
    padding = blanks + -(10 + len(text) + blanks + 1) % 64
    length = len(text) + padding + 1
    header = b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little") + text + b" " * padding + b"\n"
    marked = with_mark(header, name)
    assert len(marked) % 64 == 0 and int.from_bytes(marked[8:10], "little") == len(marked) - 10
    assert marked[10:].rstrip() == text
    needed = len(mark_of(name))
    assert len(marked) - len(header) == (0 if needed <= padding else 64)
    assert dtype_of_mark(marked[10 + len(text) :].decode(), np.dtype(np.float32)) == name


@given(st.text(" \t\n", max_size=60), st.sampled_from(["<f4", ">f4", "<f8", "|u1"]))
def test_any_padding_is_read(padding: str, descr: str) -> None:
    name = dtype_of_mark(padding, np.dtype(descr))
    assert name is None or (name in MARKED and padding.startswith(mark_of(name)) and descr[1:] == "f4")


def test_files_of_numpy_tell_nothing() -> None:
    for array in (np.zeros((2, 3), np.float32), np.float32(1), np.zeros((3, 2), np.float32).T):
        file = io.BytesIO()
        np.save(file, array)
        assert read(file.getvalue())[1] is None


def test_a_dump_tells_the_dtype_of_its_tensors(tmp_path: Path) -> None:
    writer = NpyWriter(lambda record: tmp_path)
    data = np.array([0.1, 3], ml_dtypes.bfloat16)
    writer.write([
        TensorRecord("Add", "Add-op1", 0, 0, 1, OUTPUT, 0, "bfloat16", data, "DefaultFormat"),
        TensorRecord("Add", "Add-op1", 0, 0, 2, OUTPUT, 1, "float32", data.astype(np.float32), "DefaultFormat"),
    ])  # fmt: skip
    writer.close()
    tensors = list(DumpDir.open(tmp_path).tensors())
    assert [(tensor.dtype, tensor.original_dtype, tensor.true_dtype) for tensor in tensors] == [
        ("float32", "bfloat16", "bfloat16"), ("float32", None, "float32"),
    ]  # fmt: skip
    testing.assert_same_array(tensors[0].load(), tensors[1].load())


@pytest.mark.parametrize("name", ["int4", "uint1", "float32", "bool"])
def test_other_dtypes_have_no_mark(name: str) -> None:
    assert mark_of(name) == "" and with_mark(b"any header", name) == b"any header"


ARRAYS = hnp.arrays(
    st.sampled_from(["?", "<i8", "<f2", "<f4", ">f4", "<c16", "u1", "<U5", "<U0"]),
    hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
)


@given(ARRAYS, st.booleans(), st.booleans())
def test_the_bytes_are_those_of_numpy(array: Array, is_transposed: bool, is_strided: bool) -> None:
    array = array.T if is_transposed else array
    array = array[::2] if is_strided and array.ndim else array
    expected = io.BytesIO()
    np.save(expected, array, allow_pickle=False)
    chunks = b"".join(bytes(chunk) for chunk in numpy_chunks(array))
    if array.flags.c_contiguous or array.flags.f_contiguous:
        assert chunks == expected.getvalue()
    found = np.load(io.BytesIO(chunks), allow_pickle=False)
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


def test_data_in_one_piece_is_not_copied() -> None:
    for array in (np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3).T):
        assert np.shares_memory(np.frombuffer(numpy_chunks(array)[1]), array)


def test_objects_are_refused() -> None:
    with pytest.raises(DtypeError, match="numbers or text"):
        numpy_chunks(np.array([None, 1]))
