"""What branches and runs of a loop may leave in variables, and what is said of the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.errors import GraphError
from msdump.mindspore import nn, ops

X, N = ms.Tensor(np.ones((2, 2), np.float32)), ms.Tensor(0, ms.int32)


class Apply(nn.Cell):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def construct(self, *inputs: Any) -> Any:
        return self.function(*inputs)


def in_graph(function: Callable[..., Any], *inputs: Any) -> Any:
    ms.set_context(mode=ms.GRAPH_MODE)
    return Apply(function)(*inputs)


def dtypes(x: Any, n: Any) -> Any:
    if n < 10:
        y = x.astype(ms.float16)
    else:
        y = x
    return y


def shapes(x: Any, n: Any) -> Any:
    y = x
    if n < 10:
        y = x.sum()
    return y


def kinds(x: Any, n: Any) -> Any:
    y: Any = 0
    if n < 10:
        y = x.sum()
    return y


def returned(x: Any, n: Any) -> Any:
    if n < 10:
        return x, n
    return x


def loop_dtypes(x: Any, n: Any) -> Any:
    while n < 10:
        x = x.astype(ms.float16)
        n = n + 1
    return x


def one_branch(x: Any, n: Any) -> Any:
    if n < 10:
        y = x
    return y


def first_in_loop(x: Any, n: Any) -> Any:
    while n < 10:
        y = x * n
        n = n + 1
    return y


def elements(x: Any, n: Any) -> Any:
    while x:
        x = x - 1
    return x


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (dtypes, TypeError, "'y'.*Type Join Failed: dtype1 = Float16, dtype2 = Float32"),
        (shapes, ValueError, r"'y'.*Shape Join Failed: shape1 = \(\), shape2 = \(2, 2\)"),
        (kinds, TypeError, r"'y'.*Type Join Failed: Float32\[\] cannot join with int"),
        (returned, TypeError, "what is returned.*Type Join Failed: tuple cannot join with"),
        (loop_dtypes, TypeError, "'x'.*Type Join Failed: dtype1 = Float32, dtype2 = Float16"),
        (one_branch, UnboundLocalError, "'y' is not defined in false branch, but defined in true branch"),
        (first_in_loop, UnboundLocalError, "'y' gets its first value in a loop"),
        (elements, ValueError, r"Only tensor which shape is \(\) or \(1,\) can be converted to bool.*\(2, 2\)"),
    ],
)
def test_what_does_not_fit_names_variable_and_line(
    function: Callable[..., Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=rf"test_join\.py:\d+: .*{text}") as caught:
        in_graph(function, X, N)
    line = int(str(caught.value).split("test_join.py:")[1].split(":")[0])
    first = function.__code__.co_firstlineno
    assert first < line <= first + 5


def unused(x: Any, n: Any) -> Any:
    if n < 10:
        step: Any = 1
        y = x * step
    else:
        step = x
        y = x + step
    step = 2
    return y * step


def numbers(x: Any, n: Any) -> Any:
    factor, names = 2, ("a", 1.5)
    if n < 10:
        factor, names = 3, ("a", 2.5)
    return x * factor * names[1]


def test_variables_that_nobody_reads_may_be_of_any_kind() -> None:
    np.testing.assert_array_equal(in_graph(unused, X, N).asnumpy(), 2 * X.asnumpy())


def test_numbers_that_differ_become_tensors_also_in_tuples() -> None:
    np.testing.assert_array_equal(in_graph(numbers, X, N).asnumpy(), 7.5 * X.asnumpy())
    np.testing.assert_array_equal(in_graph(numbers, X, ms.Tensor(10, ms.int32)).asnumpy(), 3 * X.asnumpy())


def appending(x: Any, n: Any) -> Any:
    rows: list[Any] = []
    if n < 10:
        rows.append(x)
    return x


def leaking(x: Any, n: Any) -> Any:
    kept: dict[str, Any] = {}

    def keep() -> None:
        kept["x"] = x + 1

    while n < 10:
        n = n + 1
        keep()
    return kept["x"]


def test_what_a_branch_changes_besides_variables_is_refused() -> None:
    with pytest.raises(GraphError, match=r"test_join\.py:\d+: .*it changed 'rows', a list"):
        in_graph(appending, X, N)
    with pytest.raises(GraphError, match="made in a branch or a loop"):
        in_graph(leaking, X, N)


def test_gradients_of_gradients_of_a_branch() -> None:
    def cube(x: Any) -> Any:
        if x.sum() > 0:
            return (x * x * x).sum()
        return x.sum()

    np.testing.assert_array_equal(in_graph(ops.grad(cube), X).asnumpy(), 3 * X.asnumpy())
    second = in_graph(ops.grad(lambda x: ops.grad(cube)(x).sum()), X)
    np.testing.assert_array_equal(second.asnumpy(), 6 * X.asnumpy())
