"""Operands like those of another call."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import find, given, settings

from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.testing import operands_like

ARRAYS = [np.arange(6, dtype=np.float32).reshape(2, 3), np.array([2, 0], np.int32), np.ones((), np.float32)]


def test_it_shrinks_to_the_call_itself() -> None:
    drawn = find(operands_like(ARRAYS), lambda arrays: len(arrays) == 3)
    assert all(np.array_equal(one, other) for one, other in zip(drawn, ARRAYS, strict=True))
    assert find(operands_like([]), lambda arrays: True) == []


@pytest.mark.parametrize(
    "name",
    ["float16", "another order", "empty", "a leading axis"],
)
def test_what_it_reaches(name: str) -> None:
    conditions = {
        "float16": lambda arrays: [str(each.dtype) for each in arrays] == ["float16", "int32", "float16"],
        "another order": lambda arrays: arrays[1].tolist() == [0, 2],
        "empty": lambda arrays: arrays[0].shape == (0, 3) and arrays[1].shape == (0,),
        "a leading axis": lambda arrays: arrays[0].ndim == 3 and arrays[1].ndim == 1,
    }
    find(operands_like(ARRAYS), conditions[name], settings=settings(max_examples=2000))


@settings(max_examples=20)
@given(operands_like(ARRAYS, ["float64"], is_special=True, has_other_shapes=False))
def test_what_stays(arrays: list[Array]) -> None:
    assert [array.shape for array in arrays] == [array.shape for array in ARRAYS]
    assert sorted(arrays[1].tolist()) == [0, 2]
    assert [dtypes.dtype_from_numpy(array.dtype).name for array in arrays] == ["float64", "int32", "float64"]
