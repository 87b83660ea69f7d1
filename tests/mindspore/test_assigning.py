"""`x[index] = value` in construct: elements as numpy, operators as MindSpore."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import basic_indices

import msdump.mindspore as ms
from msdump.errors import GraphError
from msdump.mindspore import Parameter, Tensor, nn
from msdump.process import sessions
from msdump.tensors.arrays import Array
from tests.mindspore.conftest import execution_order

SHAPE = (2, 3, 4)
V = np.array([100.0, 101.0, 102.0, 103.0], np.float32)


def data() -> Array:
    return np.arange(24, dtype=np.float32).reshape(SHAPE)


class Does(nn.Cell):
    def __init__(self, change: Callable[..., Any]) -> None:
        super().__init__()
        self.change = change

    def construct(self, x: Tensor, *others: Any) -> Tensor:
        self.change(x, *others)
        return x * 1


def run(change: Callable[..., Any], *others: Any) -> Array:
    return Does(change)(Tensor(data()), *others).asnumpy()


def expected(change: Callable[..., Any], *others: Any) -> Array:
    array = data()
    change(array, *others)
    return array


@settings(max_examples=15, deadline=None)
@given(basic_indices(SHAPE, allow_newaxis=True), st.booleans(), st.sampled_from([ms.GRAPH_MODE, ms.PYNATIVE_MODE]))
def test_basic_indices_are_those_of_numpy(index: Any, is_added: bool, mode: int) -> None:
    def change(x: Any, value: Any) -> None:
        if is_added:
            x[index] += value
        else:
            x[index] = value

    ms.set_context(mode=mode)
    np.testing.assert_array_equal(run(change, Tensor(np.float32(7))), expected(change, np.float32(7)))


KNOWN: dict[str, Callable[..., Any]] = {
    "broadcast": lambda x, v: x.__setitem__((slice(None), slice(0, 2)), v),
    "list": lambda x, v: x.__setitem__((slice(None), [0, 2]), v),
    "two lists": lambda x, v: x.__setitem__(([0, 1], [1, 2]), v),
    "mask": lambda x, v: x.__setitem__(x > 5, 0.0),
    "number from the graph": lambda x, v: x.__setitem__((0, 0, 0), v[1]),
    "numbers": lambda x, v: x.__setitem__((0, 0), (1, 2, 3, 4)),
    "several": lambda x, v: [x.__setitem__((slice(None), i, i), v[i]) for i in range(3)],
}


@pytest.mark.parametrize("name", KNOWN)
def test_other_indices_and_values(name: str, either_mode: int) -> None:
    np.testing.assert_array_equal(run(KNOWN[name], Tensor(V)), expected(KNOWN[name], V))


COMPUTED: dict[str, Callable[..., Any]] = {
    "rows": lambda x, v, i: x.__setitem__(i, v),
    "behind a number": lambda x, v, i: x.__setitem__((1, i), v),
    "behind a slice": lambda x, v, i: x.__setitem__((slice(None), i), v),
    "before a slice": lambda x, v, i: x.__setitem__((i, slice(0, 2)), v),
    "a pair": lambda x, v, i: x.__setitem__((i, i), v),
    "one": lambda x, v, i: x.__setitem__(i[0], v),
}


@pytest.mark.parametrize("name", COMPUTED)
@pytest.mark.parametrize("index", [[1, 0], [-1, -2]])
def test_indices_that_the_graph_computes(name: str, index: list[int], either_mode: int) -> None:
    found = run(COMPUTED[name], Tensor(V), Tensor(index, ms.int32))
    np.testing.assert_array_equal(found, expected(COMPUTED[name], V, np.array(index)))


def test_a_mask_that_the_graph_is_given(either_mode: int) -> None:
    mask = np.eye(2, 3) > 0

    def change(x: Any, m: Any) -> None:
        x[m] = 9.0

    np.testing.assert_array_equal(run(change, Tensor(mask)), expected(change, mask))


class Loss(nn.Cell):
    def construct(self, x: Tensor, v: Tensor) -> Tensor:
        y = x * 2
        y[:, 1] = v
        y[0, 0] += 1
        y[y > 40] = 0.0
        return (y * y).sum()


def test_gradients_flow_through_what_is_left_and_what_is_new(either_mode: int) -> None:
    of_x, of_v = ms.grad(Loss(), (0, 1))(Tensor(data()), Tensor(V / 10))
    y = 2 * data()
    y[:, 1] = V / 10
    y[0, 0] += 1
    of_y = np.where(y > 40, 0, 2 * y)
    np.testing.assert_allclose(of_v.asnumpy(), of_y[:, 1].sum(0), rtol=1e-6)
    of_y[:, 1] = 0
    np.testing.assert_allclose(of_x.asnumpy(), 2 * of_y, rtol=1e-6)


class Buffer(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.p = Parameter(Tensor(np.zeros((3, 4), np.float32)), name="p")

    def construct(self, v: Tensor) -> Tensor:
        self.p[1] = v
        self.p[:, 0] += 1
        return self.p * 1


def test_elements_of_a_parameter_last(either_mode: int) -> None:
    net = Buffer()
    for count in (1, 2):
        array = np.zeros((3, 4), np.float32)
        array[1] = V
        array[:, 0] += (count, 1, count)
        np.testing.assert_array_equal(net(Tensor(V)).asnumpy(), array)
        np.testing.assert_array_equal(net.p.asnumpy(), array)


def test_the_dump_shows_the_operators(sync_dump: Callable[..., Path]) -> None:
    """Source: order file of MindSpore 2.0 for the same lines."""
    ms.set_context(mode=ms.GRAPH_MODE)
    root = sync_dump()

    def change(x: Any) -> None:
        x[:, 0:2] += x[:, 1:3]
        x[1] = 4.0
        x[x > 5] = 0.0

    run(change)
    sessions.close_all()
    names = [name.rpartition("/")[2] for name in execution_order(root)]
    slices, update = ["StridedSlice"] * 2, "TensorScatterUpdate"
    assert [name for name in names if name != "BroadcastTo"] == [
        *slices,
        "Add",
        update,
        update,
        "Greater",
        "Select",
        "Mul",
    ]


def test_the_caller_s_tensor_is_not_written_by_a_graph() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    mine = Tensor(data())
    Does(lambda x: x.__setitem__(0, 5.0))(mine)
    np.testing.assert_array_equal(mine.asnumpy(), data())


WRONG: list[tuple[Callable[..., Any], type[Exception], str]] = [
    (lambda x, v, i: x.__setitem__(5, 1.0), IndexError, "index 5 is out of bounds"),
    (lambda x, v, i: x.__setitem__((0, 0, 0, 0), 1.0), IndexError, "too many indices"),
    (lambda x, v, i: x.__setitem__(0, v[0:3]), ValueError, r"broadcasts to \(3, 4\), got shape \(3,\)"),
    (lambda x, v, i: x.__setitem__(0, "a"), TypeError, "expected a number, a Tensor"),
    (
        lambda x, v, i: x.__setitem__((i, slice(None), i), 1.0),
        GraphError,
        "expected one tensor among integers and slices",
    ),
    (lambda x, v, i: x.__setitem__(v, 1.0), IndexError, "expected integers as index"),
]


@pytest.mark.parametrize(("change", "kind", "text"), WRONG, ids=range(len(WRONG)))
def test_what_does_not_fit_names_the_line(change: Callable[..., Any], kind: type[Exception], text: str) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    with pytest.raises(kind, match=rf"test_assigning\.py:\d+: .*{text}"):
        run(change, Tensor(V), Tensor([0, 1], ms.int32))
