"""Files of safetensors: what the library wrote is read to the element, and damage is named."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import msdump
from msdump.errors import FormatError
from msdump.formats.other_tools.safetensors import read_safetensors
from msdump.tensors import dtypes

GOLDEN = Path(__file__).parents[2] / "golden" / "other_tools"
DTYPES = {"F32": "float32", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn", "I64": "int64", "BOOL": "bool"}
NAMES_OF_TORCH = {"float8_e8m0fnu": "float8_e8m0"}


def written(path: Path, header: Any, data: bytes = b"") -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def test_every_dtype_that_the_library_wrote_is_read_to_the_element() -> None:
    expected = json.loads((GOLDEN / "all_dtypes.expected.json").read_text())
    path = GOLDEN / "all_dtypes.safetensors"
    tensors = {tensor.op_name: tensor for tensor in msdump.open(path)}
    assert set(tensors) == set(expected)
    for name, (dtype, shape, elements) in expected.items():
        array = tensors[name].load()
        assert (tensors[name].dtype, list(array.shape)) == (NAMES_OF_TORCH.get(dtype, dtype), shape)
        if dtype == "complex64":
            found: list[Any] = [[one.real, one.imag] for one in array.reshape(-1)]
        else:
            found = array.astype(np.float32).reshape(-1).tolist()
        assert found == elements, name


def test_names_come_in_their_natural_order() -> None:
    names = [member.name for member in read_safetensors(str(GOLDEN / "all_dtypes.safetensors")).members]
    assert names.index("layer.2.weight") + 1 == names.index("layer.10.weight")


def test_an_empty_tensor_is_not_the_one_that_begins_where_it_lies() -> None:
    rows = {row.operator.op_name: row for row in msdump.stat(GOLDEN / "all_dtypes.safetensors").rows if row.operator}
    assert rows["empty"].shape == (0, 4)


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=8),
        st.tuples(st.sampled_from(sorted(DTYPES)), st.lists(st.integers(0, 4), max_size=3)),
        max_size=5,
    )
)
def test_any_header_gives_the_bytes_that_it_says(
    tmp_path_factory: pytest.TempPathFactory, tensors: dict[str, tuple[str, list[int]]]
) -> None:
    header: dict[str, Any] = {"__metadata__": {"a": "b"}}
    data = b""
    for number, (name, (dtype, shape)) in enumerate(tensors.items()):
        size = math.prod(shape) * dtypes.dtype(DTYPES[dtype]).itemsize
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + size]}
        data += bytes([number % 2]) * size
    path = written(tmp_path_factory.mktemp("s") / "x.safetensors", header, data)
    members = {member.name: member for member in read_safetensors(str(path)).members}
    assert set(members) == set(tensors) - {"__metadata__"}
    for number, (name, (dtype, shape)) in enumerate(tensors.items()):
        if name != "__metadata__":
            array = members[name].array(str(path))
            assert (array.shape, set(array.tobytes())) == (tuple(shape), {number % 2} if array.size else set())
            assert array.dtype == dtypes.dtype(DTYPES[dtype]).numpy


@pytest.mark.parametrize(
    ("header", "text"),
    [
        (b"[]", "an object of tensors"),
        (b"{", "the JSON header"),
        (b"[" * 100_000, "the JSON header"),
        ({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 8]}}, "expected 4 bytes"),
        ({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, "data up to byte"),
        ({"x": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}, "a shape"),
        ({"x": {"dtype": "F6_E2M3", "shape": [4], "data_offsets": [0, 3]}}, "a dtype of safetensors"),
        ({"x": {"dtype": "F32", "shape": [1], "data_offsets": [-4, 0]}}, "bytes for F32"),
        ({"x": 5}, "dtype, shape and data_offsets"),
        ({"x": {"dtype": "F32", "shape": [1 << 61, 4], "data_offsets": [0, 4]}}, "bytes for F32"),
    ],
)
def test_what_no_file_of_the_format_has_is_named(tmp_path: Path, header: Any, text: str) -> None:
    path = written(tmp_path / "x.safetensors", header, b"\0" * 4)
    dump = msdump.open(path)
    assert list(dump) == []
    ((damaged, error),) = dump.damaged
    assert damaged == str(path)
    assert text in str(error)


def test_a_file_that_was_cut_anywhere_is_named(tmp_path: Path) -> None:
    content = (GOLDEN / "all_dtypes.safetensors").read_bytes()
    for size in range(0, len(content), 11):
        (tmp_path / "x.safetensors").write_bytes(content[:size])
        with pytest.raises(FormatError, match=r"x\.safetensors"):
            read_safetensors(str(tmp_path / "x.safetensors"))


@given(st.integers(0, 1000), st.binary(min_size=1, max_size=4))
def test_damaged_bytes_give_tensors_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, place: int, put: bytes
) -> None:
    content = (GOLDEN / "all_dtypes.safetensors").read_bytes()
    path = tmp_path_factory.mktemp("s") / "x.safetensors"
    path.write_bytes(content[:place] + put + content[place + len(put) :])
    dump = msdump.open(path)
    for tensor in dump:
        tensor.load()
    assert all(str(path) in str(error) for _, error in dump.damaged)
