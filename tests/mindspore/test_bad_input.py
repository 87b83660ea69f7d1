"""What scripts get wrong: names that are not there, operands that do not fit. Each message helps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.errors import GraphError
from msdump.mindspore import Parameter, Tensor, nn, ops
from msdump.mindspore.reference import advice, names_by_module

A = Tensor(np.ones((2, 3), np.float32))
B = Tensor(np.ones((4, 5), np.float32))


def test_the_names_of_mindspore_are_at_hand() -> None:
    names = names_by_module()
    assert names["mindspore.nn"]["Conv2d"] == "" and names["mindspore"]["bfloat16"] == "2.7"
    assert {"Tensor", "Cell", "Parameter", "mindspore.ops"} <= set(names)


def test_advice_names_the_nearest_the_module_and_the_page() -> None:
    text = advice("mindspore.nn", "relu", ["ReLU", "Conv2d"])
    assert text.startswith('Did you mean "ReLU"? MindSpore has it as mindspore.ops.relu')
    assert text.endswith("docs/api-coverage.md lists every name of MindSpore and whether it works here.")
    assert "msdump does not have mindspore.nn.Conv2d yet" in advice("mindspore.nn", "Conv2d", [])
    assert advice("mindspore.nn", "nothing_like_it", []).startswith("docs/")
    assert advice("mindspore.nn", "x", ["x1"], "Use y.").startswith("Use y. ")


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (lambda: nn.relu, r"module 'mindspore\.nn' has no attribute 'relu'.*mindspore\.ops\.relu"),
        (lambda: A.no_such_name, "'Tensor' object has no attribute 'no_such_name'"),
        (lambda: A.asnumpi, 'Did you mean "asnumpy"'),
        (lambda: Parameter(A, name="a").set_dat, 'Parameter.*Did you mean "set_data"'),
        (lambda: nn.ReLU().trainable_param, 'ReLU.*Did you mean "trainable_params"'),
    ],
)
def test_a_missing_name_says_where_to_look(read: Callable[[], Any], text: str) -> None:
    with pytest.raises(AttributeError, match=text) as caught:
        read()
    assert "docs/api-coverage.md" in str(caught.value)


def test_python_may_ask_what_a_tensor_can_do() -> None:
    assert not hasattr(A, "__array_struct__") and not hasattr(nn.ReLU(), "__len__")
    assert np.asarray(A).shape == (2, 3)


SHAPES: dict[str, Callable[[], Any]] = {
    "Add": lambda: ops.add(A, B),
    "MatMul": lambda: ops.matmul(A, B),
    "Concat": lambda: ops.concat((A, B)),
    "Reshape": lambda: ops.reshape(A, (4, 4)),
    "Transpose": lambda: ops.transpose(A, (0, 0)),
    "ReduceSum": lambda: ops.ReduceSum()(A, 7),
    "Softmax": lambda: ops.softmax(A, axis=5),
    "Conv2D": lambda: nn.Conv2d(3, 4, 3)(A),
    "MaxPool": lambda: nn.MaxPool2d(2, 2)(A),
    "BroadcastTo": lambda: ops.broadcast_to(A, (5, 3)),
    "BiasAdd": lambda: ops.BiasAdd()(A, Tensor(np.ones(5, np.float32))),
}
DTYPES: dict[str, Callable[[], Any]] = {
    "Gather": lambda: ops.gather(A, A, 0),
    "OneHot": lambda: ops.one_hot(A, 3),
}


@pytest.mark.parametrize("name", [*SHAPES, *DTYPES])
def test_operands_that_do_not_fit_raise_what_mindspore_raises(name: str, either_mode: int) -> None:
    """Source: MindSpore 2.0 and 2.7: ValueError for shapes, TypeError for dtypes."""
    call, kind = (SHAPES[name], ValueError) if name in SHAPES else (DTYPES[name], TypeError)
    with pytest.raises(kind, match=rf"{name}(.|\n)*expected ") as caught:
        call()
    assert isinstance(caught.value, GraphError)


def test_the_line_of_the_script_is_named_in_both_modes(either_mode: int) -> None:
    class Net(nn.Cell):
        def construct(self, a: Tensor, b: Tensor) -> Tensor:
            return a + b

    for call in (lambda: Net()(A, B), lambda: ms.grad(Net())(A, B)):
        with pytest.raises(ValueError, match=r"test_bad_input\.py:\d+.*expected shapes that broadcast"):
            call()
    with pytest.raises(TypeError, match=r"operand at .*test_bad_input\.py:\d+.*expected a Tensor or a number, got str"):
        ops.exp("text")


def test_paddings_stand_in_one_row() -> None:
    image = Tensor(np.ones((1, 1, 4, 4), np.float32))
    with pytest.raises(TypeError, match=r"must be tuple of int or list of int, but got \(\(0, 0\), \(1, 1\)\)"):
        ops.pad(image, ((0, 0), (1, 1)))
    assert ops.pad(image, Tensor([1, 2])).shape == ops.pad(image, [1, 2]).shape == (1, 1, 4, 7)
