"""The strict reader of .npy files: damaged ones, odd ones, and small ones that are read once."""

from __future__ import annotations

import io
import os
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import FormatError, TruncatedFileError
from msdump.formats import npy_reader
from msdump.formats.npy import npy_array, npy_header
from msdump.formats.npy_reader import read_npy, scan_npy, small_arrays
from msdump.tensors.arrays import Array
from msdump.testing import assert_same_array, shapes, tensors


def read_bytes(data: bytes, mmap: bool = True) -> Array:
    """What a file of these bytes holds, by itself and as a tensor of a dump, whose small files are read as a whole."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.npy")
        path.write_bytes(data)
        try:
            array = read_npy(path, mmap)
        except FormatError as error:
            with pytest.raises(type(error), match=re.escape(str(error))):
                scan_npy(str(path))
            raise
        header, small = scan_npy(str(path))
        assert (header.dtype, header.shape) == (array.dtype, array.shape)
        assert (small is None) == (len(data) > 2048)
        if small is not None:
            assert_same_array(small.array("x.npy"), array)
            assert (small.device, small.inode) == (path.stat().st_dev, path.stat().st_ino)
        return array


WHOLE = npy_header("float32", (2, 3)) + np.arange(6, dtype=np.float32).tobytes()


@pytest.mark.parametrize("length", range(0, len(WHOLE), 7))
def test_every_prefix_is_refused(length: int) -> None:
    with pytest.raises(TruncatedFileError):
        read_bytes(WHOLE[:length])


@settings(max_examples=150, deadline=None)
@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255), st.booleans())
def test_a_flipped_byte_gives_an_array_or_a_format_error(place: int, flip: int, mmap: bool) -> None:
    damaged = bytearray(WHOLE)
    damaged[place] ^= flip
    try:
        array = read_bytes(bytes(damaged), mmap)
    except FormatError as error:
        assert "x.npy" in str(error)  # noqa: PT017
    else:
        assert array.nbytes == 24


@pytest.mark.parametrize(
    ("shape", "descr", "message"),
    [
        ("(-1,)", "<f4", "expected a header"),
        ("(2,\x1d4)", "<f4", "expected a header"),
        ("(2,\x854)", "<f4", "expected a header"),
        ("(9999999999999999999,)", "<f4", "got 24"),
        ("(0,9999999999999999999,)", "<f4", "Something was added"),
        ("(" + "1," * 65 + ")", "<f4", "at most 64 dimensions, got 65"),
        ("(2,3)", "|O", "got '|O'"),
        ("(2,3)", "<f5", "got '<f5'"),
        ("(2,3)", "<V4", "got '<V4'"),
        ("(2,3)", "<U1", "got '<U1'"),
        ("(2,3)", "<f16", "expected the descr of a dtype of the table, got '<f16'"),
        ("(6)", "<f8", "expected 48 data bytes at offset 128 for float64 \\(6,\\), got 24"),
    ],
)
def test_headers_that_lie(shape: str, descr: str, message: str) -> None:
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    header = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
    with pytest.raises(FormatError, match=message.replace("|", r"\|")):
        read_bytes(header + bytes(24))


def test_an_empty_array_of_absurd_shape_is_refused() -> None:
    with pytest.raises(FormatError, match="expected a shape that an array can have"):
        read_bytes(npy_header("float32", (0, 2**62, 2**62)))


def test_bfloat16_of_mindspore_2_7_is_read() -> None:
    header = npy_header("float16", (2,)).replace(b"<f2", b"<E2")
    array = read_bytes(header + b"\x80\x3f\x80\xbf")
    assert array.astype(np.float32).tolist() == [1.0, -1.0]


def test_a_mapped_array_is_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        read_bytes(WHOLE)[0] = 1


@pytest.mark.parametrize("ndim", [64, 65])
def test_the_most_axes_that_an_array_can_have(ndim: int, tmp_path: Path) -> None:
    if ndim == 64 and np.lib.NumpyVersion(np.__version__) < "2.0.0":
        pytest.skip("this numpy has no arrays of so many axes")
    path = tmp_path / "x.npy"
    path.write_bytes(npy_header("float32", (1,) * ndim) + bytes(4))
    if ndim == 64:
        assert read_npy(path).ndim == ndim
    else:
        with pytest.raises(FormatError, match="expected at most 64 dimensions, got 65"):
            read_npy(path)


@settings(max_examples=150, deadline=None)
@given(tensors(dtypes=["float32", "float64", "int16", "bool", "complex64"], shapes=shapes(4, 6)))
def test_small_files_of_numpy_in_any_order_and_version(array: Array) -> None:
    content = io.BytesIO()
    np.save(content, array)
    assert_same_array(read_bytes(content.getvalue()), array)
    second = io.BytesIO()
    np.lib.format.write_array(second, array, version=(2, 0))
    assert_same_array(read_bytes(second.getvalue()), array)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        tensors(dtypes=["float32", "float64", "int16", "bool", "bfloat16", "complex64"], shapes=shapes(3, 3)),
        max_size=6,
    ),
    st.integers(1, 3),
)
def test_small_files_together_are_those_files_one_by_one(arrays: list[Array], times: int) -> None:
    files = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, array in enumerate(arrays * times):
            path = Path(folder, f"{number}.npy")
            path.write_bytes(npy_header(array.dtype.name, array.shape) + npy_array(array, array.dtype.name).tobytes())
            _, small = scan_npy(str(path))
            assert small is not None
            files[number] = small
    together = small_arrays(files)
    assert {number for number, small in files.items() if small.header.shape and small.header.size_bytes} == set(
        together
    )
    for number, array in together.items():
        alone = files[number].array("x.npy")
        assert_same_array(array, alone)
        assert array.dtype == alone.dtype
        assert array.flags.c_contiguous and not array.flags.writeable


def test_what_small_files_together_leave_out() -> None:
    contents = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, array in {
            "scalar": np.float32(1), "empty": np.ones((0, 2)), "fortran": np.asfortranarray(np.ones((2, 3))),
            "axes": np.ones((1,) * 32), "plain": np.ones((2, 3)),
        }.items():  # fmt: skip
            np.save(Path(folder, name), array)
            contents[name] = scan_npy(str(Path(folder, f"{name}.npy")))[1]
    small = {number: one for number, one in enumerate(contents.values()) if one is not None}
    assert [list(contents)[number] for number in small_arrays(small)] == ["plain"]


def test_a_header_that_is_known_tells_nothing_of_another_length() -> None:
    read_bytes(WHOLE)
    with pytest.raises(TruncatedFileError):
        read_bytes(WHOLE[:-1])
    with pytest.raises(FormatError, match="Something was added"):
        read_bytes(WHOLE + b"x")


def test_only_so_many_headers_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npy_reader, "_KNOWN_HEADERS", 3)
    monkeypatch.setattr(npy_reader, "_headers", {})
    for size in range(1, 9):
        read_bytes(npy_header("float32", (size,)) + bytes(4 * size))
    assert 1 <= len(npy_reader._headers) <= 3


def test_a_header_longer_than_a_small_file() -> None:
    text = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }".ljust(5000) + b"\n"
    header = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
    assert read_bytes(header + bytes(8)).tolist() == [0.0, 0.0]


def test_a_small_tensor_is_whole_after_its_file_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(WHOLE)
    _, small = scan_npy(str(path))
    path.unlink()
    assert small is not None
    assert small.array("x.npy").tolist() == [[0, 1, 2], [3, 4, 5]]
    assert not small.array("x.npy").flags.writeable


@pytest.mark.parametrize("kind", ["a folder", "a pipe"])
def test_what_is_no_plain_file_is_refused_at_once(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    path.mkdir() if kind == "a folder" else os.mkfifo(path)
    with pytest.raises(FormatError, match=f"expected a plain file, got {kind}"):
        scan_npy(str(path))
