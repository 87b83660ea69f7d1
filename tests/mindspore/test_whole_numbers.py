"""What operators make of whole numbers and numbers: the results of MindSpore 2.0 and 2.7 on a CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays, from_dtype

import msdump.mindspore as ms
import msdump.mindspore.numpy as mnp
from msdump.mindspore import Tensor, nn, ops
from msdump.tensors.arrays import Array

I32 = np.array([-2, 0, 3, 5], np.int32)
I64 = np.array([-2, 1, 3], np.int64)
I8 = np.array([-3, 1, 100], np.int8)
B = np.array([True, False])
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
    (ops.argmax, (np.array([False, True]),), 1, "int64"),
    (mnp.argmax, (np.array([False, True]),), 1, "int64"),
    (mnp.argmin, (np.array([True, False]),), 1, "int32"),
    (lambda b: b + 1, (B,), [2, 1], "int64"),
    (ops.abs, (B,), [True, False], "bool"),
    (ops.maximum, (B, ~B), [True, True], "bool"),
    (ops.less, (B, ~B), [False, True], "bool"),
    (lambda x: x.cumsum(0), (I8,), [-3, -2, 98], "int32"),
    (mnp.cumsum, (B,), [1, 1], "int32"),
    (ops.mse_loss, (I8, I8 - np.int8(1)), 1.0, "float32"),
    (ops.margin_ranking_loss, (I8, I8, I8), 0.0, "float32"),
    (nn.LeakyReLU(), (I32,), [0, 0, 3, 5], "int32"),
    (ops.hardtanh, (I32,), [-1, 0, 1, 1], "int32"),
    (lambda x, y: x.add(y, alpha=2), (I64, I64), [-6, 3, 9], "int64"),
    (lambda x, y: x.sub(y, alpha=2), (I64, I64), [2, -1, -3], "int64"),
    (lambda x: x.reshape(1, 3, 1).transpose(0, 1), (I64,), [[[-2]], [[1]], [[3]]], "int64"),
    (ops.inner, (I8[:0], I8[:0]), 0, "int8"),
    (ops.mean, (np.array([2**63, 2**63 - 2], np.uint64),), 2**63 - 1, "uint64"),
    (ops.mean, (np.array([-(2**63)], np.int64),), -(2**63), "int64"),
    (ops.mean, (np.array([-7, 0], np.int8),), -3, "int8"),
]


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE], ids=["graph", "pynative"])
@pytest.mark.parametrize(
    ("function", "operands", "values", "dtype"),
    CASES,
    ids=[f"{getattr(c[0], '__name__', 'layer')}-{n}" for n, c in enumerate(CASES)],
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


WHOLE_DTYPES = [np.dtype(f"{kind}{size}") for kind in ("int", "uint") for size in (8, 16, 32, 64)]


def arrays_of_all_dtypes() -> st.SearchStrategy[Array]:
    """Integers with the ends of their range among them."""

    def of(dtype: np.dtype[Any]) -> st.SearchStrategy[Array]:
        ends = st.sampled_from([np.iinfo(dtype).min, np.iinfo(dtype).max])
        return arrays(dtype, st.integers(1, 6), elements=st.one_of(ends, from_dtype(dtype)))

    return st.sampled_from(WHOLE_DTYPES).flatmap(of)


@given(numbers=arrays_of_all_dtypes(), data=st.data())
def test_the_smallest_of_any_integers(numbers: Array, data: st.DataObject) -> None:
    """A negation of the operand wraps for unsigned dtypes and for the least integer."""
    count = data.draw(st.integers(1, numbers.size))
    order = np.argsort(numbers, kind="stable")[:count]
    for values, places in (
        ops.topk(Tensor(numbers), count, largest=False),
        Tensor(numbers).topk(count, largest=False),
        ms.mint.topk(Tensor(numbers), count, largest=False),
    ):
        assert values.asnumpy().tolist() == numbers[order].tolist() and values.asnumpy().dtype == numbers.dtype
        assert numbers[places.asnumpy()].tolist() == numbers[order].tolist()
    assert int(mnp.argmin(Tensor(numbers)).asnumpy()) == order[0]


def test_the_smallest_of_floats_is_found_by_negation() -> None:
    """Source: MindSpore's operators are Neg, TopK, Neg."""
    values, places = ops.topk(Tensor(np.array([3.0, -1.0, -np.inf], np.float32)), 2, largest=False)
    assert values.asnumpy().tolist() == [-np.inf, -1] and places.asnumpy().tolist() == [2, 1]


@pytest.mark.parametrize("largest", [True, False])
def test_an_error_about_bools_names_the_operator_that_was_called(largest: bool) -> None:
    with pytest.raises(TypeError, match=r"^TopK: expected input of a dtype of numbers"):
        ops.topk(Tensor([True, False]), 1, largest=largest)
    with pytest.raises(TypeError, match=r"^Argmin at"):
        ops.argmin(Tensor([True, False]))


@pytest.mark.parametrize("size", [16, 32, 64])
@pytest.mark.parametrize("other", ["int8", "int64", "uint8", "float32"])
def test_wide_unsigned_integers_do_not_convert(size: int, other: str) -> None:
    """Source: MindSpore 2.0 and 2.7 refuse them beside any other dtype than bool."""
    unsigned = Tensor(np.array([1, 65535], f"uint{size}"))
    for function in (ops.add, ops.equal, ops.maximum, ops.xlogy):
        with pytest.raises(TypeError, match="expected two that convert"):
            function(unsigned, Tensor(np.array([1, 1], other)))
    assert ops.mul(unsigned, Tensor([True, False])).asnumpy().tolist() == [1, 0]


def test_numbers_beyond_a_dtype_do_not_wrap() -> None:
    short = Tensor(np.array([1, 2, 2], np.uint8))
    assert float(ops.bincount(short, minlength=300).sum().asnumpy()) == 3
    assert ops.sequence_mask(Tensor(np.array([100], np.int8)), 300).asnumpy().sum() == 100
    least = ms.COOTensor(Tensor([[0, 0]]), Tensor(np.array([-128], np.int8)), (1, 1))
    nothing = ms.COOTensor(Tensor([[0, 0]]), Tensor(np.array([0], np.int8)), (1, 1))
    assert least.add(nothing, Tensor(5)).values.asnumpy().tolist() == [-128]
    metric = ms.nn.TopKCategoricalAccuracy(1)
    metric.update(np.array([[3, 0, 5]], np.uint8), np.array([2]))
    assert metric.eval() == 1
