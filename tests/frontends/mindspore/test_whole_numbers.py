"""What operators make of whole numbers and numbers: the results of MindSpore 2.0 and 2.7 on a CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msdump.mindspore as ms
import msdump.mindspore.numpy as mnp
import numpy as np
import pytest
from msdump.mindspore import Tensor, ops

I32 = np.array([-2, 0, 3, 5], np.int32)
I64 = np.array([-2, 1, 3], np.int64)
I8 = np.array([-3, 1, 100], np.int8)
F32 = np.array([-2, 0, 1.5], np.float32)
CASES: list[tuple[Callable[..., Any], tuple[Any, ...], list[Any], str]] = [
    (ops.relu, (I32,), [0, 0, 3, 5], "int32"),
    (ops.relu, (I8,), [0, 1, 100], "int8"),
    (ops.hardswish, (I64,), [0, 0, 3], "int64"),
    (ops.hardswish, (I8,), [0, 0, 100], "int8"),
    (ops.hardsigmoid, (I64,), [0, 0, 1], "int64"),
    (mnp.reciprocal, (I64,), [0, 1, 0], "int64"),
    (mnp.exp2, (I32,), [0, 1, 8, 32], "int32"),
    (mnp.maximum, (I32, 2.5), [2, 2, 3, 5], "int32"),
    (mnp.maximum, (2.5, I32), [2, 2, 3, 5], "int32"),
    (mnp.minimum, (I32, np.float32(2.5)), [-2, 0, 2, 2], "int32"),
    (mnp.copysign, (I32, 2.5), [2, 0, 3, 5], "int32"),
    (ops.logical_and, (F32, F32), [True, False, True], "bool"),
    (ops.logical_or, (I32, I32), [True, False, True, True], "bool"),
    (ops.logical_and, (F32, F32 > 0), [False, False, True], "bool"),
    (ops.logical_not, (I32,), [False, True, False, False], "bool"),
    (ops.logical_xor, (F32, F32), [False, False, False], "bool"),
]


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE], ids=["graph", "pynative"])
@pytest.mark.parametrize(
    ("function", "operands", "values", "dtype"), CASES, ids=[f"{c[0].__name__}-{n}" for n, c in enumerate(CASES)]
)
def test_whole_numbers(
    function: Callable[..., Any], operands: tuple[Any, ...], values: list[Any], dtype: str, mode: int
) -> None:
    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    try:
        tensors = [Tensor(each) if isinstance(each, np.ndarray | np.generic) else each for each in operands]
        result = ms.jit(lambda *given: function(*given))(*tensors) if mode == ms.GRAPH_MODE else function(*tensors)
    finally:
        ms.set_context(mode=before)
    assert result.asnumpy().tolist() == values and result.asnumpy().dtype == dtype
