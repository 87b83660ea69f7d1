"""Archives of numpy: what numpy wrote is read as numpy reads it, stored or deflated, and damage is named."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

import msdump
from msdump.errors import FormatError
from msdump.formats.other_tools.npz import read_npz

NAMES = st.text("abc./é", min_size=1, max_size=5).filter(lambda name: not name.startswith("/") and "//" not in name)
ARRAYS = nps.arrays(
    st.sampled_from(["f4", "f8", "f2", "i8", "u1", "?"]), nps.array_shapes(min_dims=0, min_side=0, max_side=4)
)


@given(st.dictionaries(NAMES, ARRAYS, min_size=1, max_size=4), st.booleans())
def test_every_array_is_what_numpy_wrote(
    tmp_path_factory: pytest.TempPathFactory, arrays: dict[str, np.ndarray], is_deflated: bool
) -> None:
    path = tmp_path_factory.mktemp("npz") / "x.npz"
    (np.savez_compressed if is_deflated else np.savez)(path, **arrays)  # type: ignore[arg-type]
    held = read_npz(str(path))
    assert held.problems == ()
    assert [member.name for member in held.members] == list(arrays)
    for member in held.members:
        expected = arrays[member.name]
        found = member.array(str(path))
        assert (found.dtype, found.shape, member.size_bytes) == (expected.dtype, expected.shape, expected.nbytes)
        assert found.tobytes() == expected.tobytes()


def test_the_order_of_the_axes_is_kept(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.asfortranarray(np.arange(6).reshape(2, 3)))
    (tensor,) = msdump.open(tmp_path / "x.npz")
    assert tensor.load().tolist() == [[0, 1, 2], [3, 4, 5]]


def test_objects_are_a_problem_and_the_rest_is_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", good=np.ones(2), bad=np.array([None], dtype=object))
    dump = msdump.open(tmp_path / "x.npz")
    assert [tensor.op_name for tensor in dump] == ["good"]
    assert "x.npz, bad" in str(dump.damaged[0][1])


@pytest.mark.parametrize("is_deflated", [False, True])
def test_a_file_that_was_cut_anywhere_is_named(tmp_path: Path, is_deflated: bool) -> None:
    (np.savez_compressed if is_deflated else np.savez)(tmp_path / "whole.npz", a=np.zeros(30), b=np.ones(3))
    content = (tmp_path / "whole.npz").read_bytes()
    for size in range(0, len(content), 9):
        (tmp_path / "x.npz").write_bytes(content[:size])
        with pytest.raises(FormatError, match=r"x\.npz"):
            read_npz(str(tmp_path / "x.npz"))


def test_a_small_file_that_claims_much_is_refused(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "x.npz", a=np.zeros(8))
    content = bytearray((tmp_path / "x.npz").read_bytes())
    place = content.index(b"PK\1\2") + 24
    content[place : place + 4] = struct.pack("<I", 1 << 30)
    (tmp_path / "x.npz").write_bytes(content)
    held = read_npz(str(tmp_path / "x.npz"))
    assert held.members == ()
    assert "deflated ones" in str(held.problems[0])


@given(st.integers(0, 600), st.binary(min_size=1, max_size=4), st.booleans())
def test_damaged_bytes_give_tensors_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, place: int, put: bytes, is_deflated: bool
) -> None:
    path = tmp_path_factory.mktemp("npz") / "x.npz"
    (np.savez_compressed if is_deflated else np.savez)(path, a=np.arange(9.0), b=np.ones(3))
    content = path.read_bytes()
    path.write_bytes(content[:place] + put + content[place + len(put) :])
    dump = msdump.open(path)
    for tensor in dump:
        try:
            tensor.load()
        except FormatError as error:
            assert str(path) in str(error)  # noqa: PT017
    assert all(str(path) in str(error) for _, error in dump.damaged)
