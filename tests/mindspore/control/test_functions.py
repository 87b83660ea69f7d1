"""Which functions are rewritten, for how long, and what is said of those that cannot be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msdump.mindspore as ms
from msdump.errors import GraphError
from msdump.mindspore import nn
from msdump.mindspore.control.functions import new_code
from msdump.mindspore.program.flow_executor import FlowExecutor
from msdump.mindspore.sources import CodeTable
from tests.mindspore.control.programs import load, programs
from tests.mindspore.control.test_join import N, X, in_graph


class Scaled(nn.Cell):
    __scale = 2

    def scaled(self, x: Any) -> Any:
        return x * self.__scale


class Child(Scaled):
    __scale = 3

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def construct(self, x: Any, n: Any) -> Any:
        """A method of a class, with names of its own."""
        if n < 3:
            x = super().scaled(x)
        elif n < 5:
            return x * self.__scale
        return x


def test_methods_keep_private_names_and_super() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    before = Child.construct.__code__
    for n, factor in ((0, 2), (4, 3), (7, 1)):
        result = Child()(X, ms.Tensor(n, ms.int32))
        np.testing.assert_array_equal(result.asnumpy(), factor * X.asnumpy())
    assert Child.construct.__code__ is before
    assert Child.construct.__doc__ == "A method of a class, with names of its own."


def test_only_conditions_on_tensors_cost_anything() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)

    class Known(nn.Cell):
        def construct(self, x: Any) -> Any:
            return x * 2 if x.shape[0] == 2 and x.ndim < 3 else x

    net = Known()
    net(X)
    (graphs,) = net._cache.by_signature.values()
    assert not any(isinstance(graph.executor, FlowExecutor) for graph in graphs)


def closures(x: Any, n: Any) -> Any:
    count = 0

    def inner(y: Any) -> Any:
        nonlocal count
        count = count + 1
        return y * 2 if y.sum() > 0 else y

    for _ in range(2):
        x = inner(x)
    return x * count


@ms.jit
def compiled(x: Any, n: Any) -> Any:
    """Under a decorator."""
    if n < 3:
        return x * 2
    return x


def test_functions_in_functions_and_decorated_ones_are_rewritten() -> None:
    np.testing.assert_array_equal(in_graph(closures, X, N).asnumpy(), 8 * X.asnumpy())
    np.testing.assert_array_equal(compiled(X, N).asnumpy(), 2 * X.asnumpy())
    np.testing.assert_array_equal(in_graph(compiled, X, ms.Tensor(3, ms.int32)).asnumpy(), X.asnumpy())


def made(factor: int) -> Callable[..., Any]:
    def chosen(x: Any, n: Any) -> Any:
        return x * factor if n < 3 else x

    return chosen


def test_functions_that_are_made_anew_are_each_rewritten() -> None:
    for factor in (2, 5):
        np.testing.assert_array_equal(in_graph(made(factor), X, N).asnumpy(), factor * X.asnumpy())


def test_a_function_that_each_trace_makes_is_refused() -> None:
    np.testing.assert_array_equal(in_graph(lambda x, n: made(2)(x, n), X, N).asnumpy(), 2 * X.asnumpy())
    ms.set_context(jit_syntax_level=ms.STRICT)
    with pytest.raises(GraphError, match=r"chosen of .*test_functions.py is made by the program while it is compiled"):
        in_graph(lambda x, n: made(2)(x, n), X, N)


def test_code_that_is_gone_is_forgotten() -> None:
    table: CodeTable[int] = CodeTable()
    code = compile("1", "a", "eval")
    table[code] = 1
    assert table.get(code) == table[code] == 1 and code in table and table.codes() == [code]
    del code
    assert table.codes() == []


def test_equal_functions_of_two_files_are_both_rewritten() -> None:
    source = "def choose(x, n):\n    if n < 3:\n        return x * 2\n    return x\n"
    for _ in range(2):
        np.testing.assert_array_equal(in_graph(load(source, "choose"), X, N).asnumpy(), 2 * X.asnumpy())


def inside_with(x: Any, n: Any) -> Any:
    with np.errstate(all="ignore"):
        if n < 3:
            return x * 2
    return x


def comprehension(x: Any, n: Any) -> Any:
    return [x for limit in range(3) if n < limit]


def generator(x: Any, n: Any) -> Iterator[Any]:
    if n < 3:
        yield x


def without_source() -> Callable[..., Any]:
    names: dict[str, Any] = {}
    exec("def choose(x, n):\n    if n < 3:\n        return x\n    return -x\n", names)
    function: Callable[..., Any] = names["choose"]
    return function


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (inside_with, "leave a with or a try"),
        (comprehension, "not in a comprehension"),
        (lambda x, n: x if n < 3 else -x, r"is a lambda\. Write it as a function with def"),
        (lambda x, n: list(generator(x, n)), r"is a generator\. Return a list"),
        (without_source(), r"has no source that can be read\. Write it to a file"),
    ],
    ids=["with", "comprehension", "lambda", "generator", "exec"],
)
def test_what_cannot_be_rewritten_says_what_to_write(function: Callable[..., Any], text: str) -> None:
    ms.set_context(jit_syntax_level=ms.STRICT)
    with pytest.raises(GraphError, match=text) as caught:
        in_graph(function, X, N)
    assert "PYNATIVE_MODE" in str(caught.value)


def test_a_parameter_is_a_condition_that_each_run_reads_anew() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)

    class Counting(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.count = ms.Parameter(ms.Tensor(2, ms.int32), name="count")

        def construct(self, x: Any) -> Any:
            if self.count:
                x = x * 2
                self.count = self.count - 1
            return x

    net = Counting()
    assert [float(net(X)[0, 0]) for _ in range(4)] == [2, 2, 1, 1]
    assert int(net.count) == 0


@settings(max_examples=20)
@given(programs(), st.lists(st.integers(-2, 4), min_size=2, max_size=2), st.floats(-2, 2, width=16))
def test_rewritten_code_on_known_values_does_what_the_source_does(source: str, counts: list[int], start: float) -> None:
    ms.set_context(mode=ms.PYNATIVE_MODE)
    results = []
    for is_rewritten in (False, True):
        net_type = load(source)
        if is_rewritten:
            net_type.construct.__code__ = new_code(net_type.construct.__code__, [net_type.construct])
        x, y = ms.Tensor(np.array([start, 0.5], np.float32)), ms.Tensor(np.array([1.0, -start], np.float32))
        results.append(net_type()(x, y, *(ms.Tensor(count, ms.int32) for count in counts)))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one.asnumpy(), other.asnumpy())
