"""The chunks of a file are the bytes that numpy.save writes."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from msdump.arrays import Array
from msdump.errors import DtypeError
from msdump.formats.numpy_save import numpy_chunks

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
