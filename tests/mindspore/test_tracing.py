"""What a traced construct may not do, and what it may."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.errors import GraphError, KernelNotFoundError
from msdump.mindspore import Parameter, Tensor, nn, ops
from msdump.mindspore.dispatch import call
from tests.mindspore.networks import graphs_of

X = Tensor(np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]], np.float32))


class Apply(nn.Cell):
    """A cell that computes a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def construct(self, *inputs: Any) -> Any:
        return self.function(*inputs)


def _in_graph(function: Callable[..., Any], *inputs: Any) -> Any:
    ms.set_context(mode=ms.GRAPH_MODE)
    return Apply(function)(*inputs)


DATA_DEPENDENT: dict[str, Callable[[Tensor], Any]] = {
    "branch of a lambda": lambda x: x if x.sum() > 0 else -x,
    "float": lambda x: float(x[0, 0]),
    "int": lambda x: int(x[0, 0]),
    "asnumpy": lambda x: x.asnumpy(),
    "item": lambda x: x.sum().item(),
    "range": lambda x: list(range(x.sum().astype(ms.int32))),
}


@pytest.mark.parametrize("name", DATA_DEPENDENT)
def test_looking_at_data_names_the_line_and_the_way_out(name: str) -> None:
    ms.set_context(jit_syntax_level=ms.STRICT)
    with pytest.raises(GraphError, match=r"test_tracing\.py:\d+: .*expected something that is known") as caught:
        _in_graph(DATA_DEPENDENT[name], X)
    assert "PYNATIVE_MODE" in str(caught.value)
    assert re.search(r"\bops\b", str(caught.value))


@pytest.mark.parametrize("name", ["branch of a lambda", "float", "int", "asnumpy", "item"])
def test_looking_at_data_is_fine_in_pynative(name: str) -> None:
    assert Apply(DATA_DEPENDENT[name])(X) is not None


def test_iterating_over_a_tensor_gives_its_rows() -> None:
    rows = _in_graph(lambda x: [row for row in x], X)  # noqa: C416  (the loop is what is tested)
    np.testing.assert_array_equal([row.asnumpy() for row in rows], X.asnumpy())


def test_branching_on_shapes_is_fine() -> None:
    found = _in_graph(lambda x: x * 2 if x.shape[0] == 2 and x.dtype == ms.float32 else x, X)
    np.testing.assert_array_equal(found.asnumpy(), 2 * X.asnumpy())


def test_operands_that_do_not_fit_name_the_user_s_line() -> None:
    with pytest.raises(GraphError, match=r"MatMul.*test_tracing\.py:\d+"):
        _in_graph(lambda x: ops.matmul(x, x), X)


def test_unknown_operators_name_the_nearest_and_the_line() -> None:
    with pytest.raises(KernelNotFoundError, match=r'test_tracing\.py:\d+: .*Did you mean "ReLU"'):
        _in_graph(lambda x: call("Relu", x), X)


def test_a_tensor_of_another_trace_is_refused() -> None:
    kept: list[Tensor] = []

    def keep(x: Tensor) -> Tensor:
        kept.append(x)
        return x + 1

    _in_graph(keep, X)
    with pytest.raises(GraphError, match="Return it from that construct"):
        _in_graph(lambda x: x + kept[0], X)
    with pytest.raises(GraphError, match="has no value here"):
        _ = kept[0].array + 1


INDICES: dict[str, Any] = {
    "row": 0,
    "last": -1,
    "element": (1, 2),
    "slice": (slice(None), slice(0, 2)),
    "step": (slice(None, None, 2),),
    "back": (Ellipsis, slice(None, None, -1)),
    "new": (None, slice(1, None)),
    "tensor": Tensor(np.array([1, 0, 1], np.int32)),
    "column": (slice(None), Tensor(np.array([2, 0], np.int32))),
    "list": [1, 1],
}


@pytest.mark.parametrize("name", INDICES)
def test_indexing_as_numpy(name: str) -> None:
    index = INDICES[name]
    items = index if isinstance(index, tuple) else (index,)
    plain = tuple(item.asnumpy() if isinstance(item, Tensor) else item for item in items)
    expected = X.asnumpy()[plain]
    np.testing.assert_array_equal(X[index].asnumpy(), expected)
    np.testing.assert_array_equal(_in_graph(lambda x: x[index], X).asnumpy(), expected)


def test_results_keep_their_structure() -> None:
    made = _in_graph(lambda x: {"sum": x.sum(), "both": (x, [x + 1, 3, None])}, X)
    assert float(made["sum"]) == 5.0
    assert isinstance(made["both"][1], list) and made["both"][1][1:] == [3, None]


def test_plain_arguments_are_part_of_the_signature() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    cell = Apply(lambda x, factor, shift=None: x * factor + (0 if shift is None else shift))
    assert float(cell(Tensor(2.0), 3)) == 6.0
    assert float(cell(Tensor(2.0), 4)) == 8.0
    assert float(cell(Tensor(2.0), 4, Tensor(1.0))) == 9.0
    assert float(cell(Tensor(5.0), 3)) == 15.0
    assert len(graphs_of(cell)) == 3


def test_a_graph_returns_the_items_of_iterators() -> None:
    @ms.jit
    def several(x: Tensor) -> Any:
        pairs = zip((1, 2), (x, x + 1), strict=True)
        return map(abs, [-1, x]), map(abs, (-1,)), filter(None, (0, 1)), (n for n in (1, 2)), range(2), pairs

    of_list, of_tuple, chosen, made, numbers, pairs = several(Tensor(-2))
    assert [int(item) for item in of_list] == [1, 2] and type(of_list) is list
    assert (of_tuple, chosen, made, numbers) == ((1,), [1], [1, 2], (0, 1))
    assert [(number, int(tensor)) for number, tensor in pairs] == [(1, -2), (2, -1)]


def test_print_runs_in_order_and_is_not_removed(capfd: pytest.CaptureFixture[str]) -> None:
    def noisy(x: Tensor) -> Tensor:
        ops.Print()("first", x.sum())
        ops.Print()("second")
        return x

    _in_graph(noisy, X)
    text = capfd.readouterr().out
    assert text.splitlines() == ["first", "5", "second"]


def test_assign_writes_the_parameter(either_mode: int) -> None:
    class Counter(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.count = Parameter(Tensor(0.0), name="count", requires_grad=False)

        def construct(self, x: Tensor) -> Tensor:
            ops.assign_add(self.count, 1)
            return x * self.count

    counter = Counter()
    assert [float(counter(Tensor(10.0))) for _ in range(3)] == [10.0, 20.0, 30.0]
    assert float(counter.count) == 3.0


def test_jit_compiles_in_pynative_too() -> None:
    calls = []

    @ms.jit
    def doubled(x: Tensor) -> Tensor:
        calls.append(x.is_concrete)
        return ops.mul(x, 2)

    assert float(doubled(Tensor(2.0))) == 4.0
    assert float(doubled(Tensor(3.0))) == 6.0
    assert calls == [False]
