"""The dtype before widening, in the padding of a header: every reader passes over it, msdump reads it."""

from __future__ import annotations

import ast
import io
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from msdump import dtypes, testing
from msdump.analysis.convert.tensor_form import Value, npy_chunks
from msdump.arrays import Array
from msdump.formats.dump_dir import DumpDir
from msdump.formats.npy import NpyWriter, npy_array, npy_header, read_marked_npy
from msdump.formats.npy_mark import dtype_of_mark, mark_of, with_mark
from msdump.formats.numpy_save import numpy_chunks
from msdump.records import OUTPUT, TensorRecord

NAMES = [row.name for row in dtypes.TABLE if row.numpy_type is not None and row.kind != dtypes.OTHER]
MARKED = ["bfloat16", "float8_e5m2", "float8_e4m3fn", "float8_e8m0", "float6_e3m2", "float6_e2m3", "float4_e2m1"]
SHAPES = hnp.array_shapes(min_dims=0, max_dims=9, min_side=0, max_side=2)


def read(data: bytes) -> tuple[Array, str | None]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.npy")
        path.write_bytes(data)
        array, original = read_marked_npy(path, mmap=False)
        testing.assert_same_array(np.load(path), array)
        return array, original


@given(st.sampled_from(NAMES), SHAPES)
def test_every_writer_tells_it_and_numpy_reads_the_file(name: str, shape: tuple[int, ...]) -> None:
    stored = npy_array(np.zeros(shape, dtypes.dtype(name).numpy), name)
    files = [
        npy_header(name, shape) + stored.tobytes(),
        b"".join(map(bytes, numpy_chunks(stored, name))),
        b"".join(map(bytes, npy_chunks(Value(np.zeros(shape, dtypes.dtype(name).numpy), name)))),
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
