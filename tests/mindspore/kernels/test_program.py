from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from msdump.errors import GraphError
from msdump.graph.primitive import definition_of
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.program import tensor_text
from msdump.tensors.arrays import Array
from tests.mindspore.kernels.interpreter import run_op

TEXTS = [
    (
        np.array([[1, 2], [3, 4]], np.float32),
        "Tensor(shape=[2, 2], dtype=Float32, value=\n"
        "[[ 1.00000000e+00  2.00000000e+00]\n [ 3.00000000e+00  4.00000000e+00]])",
    ),
    (np.array([[1, 2]], np.int32), "Tensor(shape=[1, 2], dtype=Int32, value=\n[[1 2]])"),
    (np.array([1, -2], np.int64), "Tensor(shape=[2], dtype=Int64, value=[ 1 -2])"),
    (np.array([True, False]), "Tensor(shape=[2], dtype=Bool, value=[ True False])"),
    (np.array(2.5, np.float32), "2.5"),
    (np.array(7, np.int64), "7"),
    (np.array(True), "1"),
    (np.array(1 / 3, np.float32), "0.333333"),
    (np.array([0.5, np.nan], ml_dtypes.bfloat16), "Tensor(shape=[2], dtype=BFloat16, value=[ 5.0000e-01         nan])"),
    (np.zeros((0, 2), np.float32), "Tensor(shape=[0, 2], dtype=Float32, value=\n[])"),
]


@pytest.mark.parametrize(("array", "text"), TEXTS)
def test_tensor_text(array: Array, text: str) -> None:
    assert tensor_text(array) == text


def test_print_puts_texts_and_tensors_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    x, y = np.array([1], np.int32), np.array(2, np.int32)
    (result,) = run_op("Print", [x, y], {"strings": ("x is", None, "and y is", None)})
    assert result.tolist() == [0] and result.dtype == np.int32
    x_text, y_text = "Tensor(shape=[1], dtype=Int32, value=[1])", "2"
    assert capsys.readouterr().out == f"x is\n{x_text}\nand y is\n{y_text}\n"
    run_op("Print", [x], {"strings": ("only texts first",)})
    assert capsys.readouterr().out == f"only texts first\n{x_text}\n"
    run_op("Print", [], {"strings": ()})
    assert capsys.readouterr().out == ""


def test_print_must_run_and_depend_is_no_kernel() -> None:
    assert definition_of("Print").has_side_effect
    assert not definition_of("Depend").is_kernel and not definition_of("StopGradient").is_kernel


def test_print_refuses_what_it_cannot_place() -> None:
    infer = definition_of("Print").infer
    assert infer is not None
    with pytest.raises(GraphError, match="2 tensors, one for each None in strings, got 1"):
        infer([TensorType("float32", ())], {"strings": (None, None)})
    with pytest.raises(GraphError, match="strings to be a tuple of str and None"):
        infer([], {"strings": ("a", 1)})


def test_depend_passes_its_first_operand() -> None:
    x = np.array([1.0, 2.0])
    (y,) = run_op("Depend", [x, np.zeros((3, 3))])
    assert np.shares_memory(x, y)
    out = np.empty(2)
    definition_of("Depend").kernels["numpy"]([x], {}, [out])
    assert out.tolist() == [1.0, 2.0]


def test_all_reduce_of_one_process_is_the_tensor() -> None:
    x = np.array([1.0, np.nan])
    np.testing.assert_array_equal(run_op("AllReduce", [x], {"op": "max"})[0], x)
    infer = definition_of("AllReduce").infer
    assert infer is not None
    with pytest.raises(GraphError, match="op to be one of sum, max, min, prod, got 'avg'"):
        infer([TensorType("float32", ())], {"op": "avg"})
