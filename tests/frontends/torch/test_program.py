"""Program: the same results as the graph's own code, arguments taken, values forgotten."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import fx  # noqa: E402

from msdump.frontends.torch.program import FxProgram  # noqa: E402

aten = torch.ops.aten


def nested(x: Any, y: Any) -> Any:
    joined = aten.cat.default([x, aten.mul.Tensor(x, 2), y], dim=0)
    low, high = aten.split.Tensor(joined, 3)[0:2]
    shifted = aten.add.Tensor(low, high, alpha=3)
    return aten.sum.dim_IntList(shifted, [0], True), {"x": x, "all": [joined, None]}


def constant(x: Any, y: Any) -> Any:
    return aten.add.Tensor(aten.index.Tensor(y, [None, torch.tensor([0])]), x[0:1])


@pytest.mark.parametrize("function", [nested, constant])
def test_results_are_those_of_the_graph(function: Any) -> None:
    module = fx.symbolic_trace(function)
    args = [torch.randn(2, 3), torch.randn(2, 3)]
    expected = module(*args)
    actual = FxProgram(module).run(args)
    assert args == []
    torch.testing.assert_close(actual, expected, rtol=0, atol=0)


def test_a_value_is_forgotten_after_its_last_use() -> None:
    alive: list[Any] = []

    def watch(x: Any) -> Any:
        alive.append([item() is not None for item in made])
        made.append(weakref.ref(x))
        return x + 1

    made: list[Any] = []
    graph = fx.Graph()
    value = graph.placeholder("x")
    for _ in range(4):
        value = graph.call_function(watch, (value,))
    graph.output(value)
    program = FxProgram(fx.GraphModule({}, graph))
    program.run([torch.zeros(3)])
    gc.collect()
    # Of what was read before, only the operand of the call before may still be there.
    assert alive == [[], [False], [False, False], [False, False, False]]


def test_an_argument_that_is_an_output_stays() -> None:
    module = fx.symbolic_trace(lambda x: (x, aten.neg.default(x)))
    x = torch.ones(2)
    same, negative = FxProgram(module).run([x])
    assert same is x
    assert negative.tolist() == [-1, -1]
