"""Attributes that `construct` sets: a parameter is written by Assign, others keep no state in a graph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.mindspore import Parameter, Tensor, nn, ops
from msdump.process import sessions
from tests.mindspore.conftest import execution_order

pytestmark = pytest.mark.usefixtures("either_mode")
X = np.array([1.0, 2.0, 3.0], np.float32)


def x() -> Tensor:
    return Tensor(X.copy())


class Counter(nn.Cell):
    """Multiplies with the number of its call; `write` is how it counts."""

    def __init__(self, write: Callable[[Any, Tensor], None]) -> None:
        super().__init__()
        self.n = Parameter(Tensor(0, ms.int32), name="n")
        self.write = write

    def construct(self, a: Tensor) -> Tensor:
        self.write(self, a)
        return a * self.n


def _plain(cell: Any, a: Tensor) -> None:
    cell.n = cell.n + 1


def _augmented(cell: Any, a: Tensor) -> None:
    cell.n += 1


def _loop(cell: Any, a: Tensor) -> None:
    for step in range(2):
        cell.n += step


@pytest.mark.parametrize("write", [_plain, _augmented, _loop])
def test_an_assignment_to_a_parameter_lasts(write: Callable[[Any, Tensor], None]) -> None:
    net = Counter(write)
    memory = net.n
    for step in (1, 2, 3):
        np.testing.assert_array_equal(net(x()).asnumpy(), step * X)
    assert net.n is memory and int(net.n) == 3
    assert list(net.get_parameters()) == [memory]


class Parent(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.child = Counter(_augmented)

    def construct(self, a: Tensor) -> Tensor:
        self.child.n += 1
        return self.child(a) + self.child.n


def test_a_parameter_of_a_child_may_be_assigned() -> None:
    net = Parent()
    for step in (1, 2, 3):
        np.testing.assert_array_equal(net(x()).asnumpy(), 2 * step * X + 2 * step)
    assert [parameter.name for parameter in net.get_parameters()] == ["child.n"]


def test_it_is_done_under_a_gradient_too() -> None:
    net = Counter(_plain)
    for step in (1, 2, 3):
        np.testing.assert_array_equal(ms.grad(net)(x()).asnumpy(), [step] * 3)
    assert int(net.n) == 3


class Weighted(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(Tensor(np.ones(3, np.float32)), name="w")
        self.k = Parameter(Tensor(0.0, ms.float32), name="k", requires_grad=False)

    def construct(self, a: Tensor) -> Tensor:
        self.k = self.k + 1
        return (a * self.w * self.k).sum()


def test_it_is_done_in_a_training_step() -> None:
    net = Weighted()
    step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.1))
    np.testing.assert_allclose([float(step(x())) for _ in range(3)], [6, 9.2, 5.4], rtol=1e-6)
    assert float(net.k) == 3


class ReadFirst(Weighted):
    def construct(self, a: Tensor) -> Tensor:
        y = a * self.k
        self.k = self.k + 1
        return y


def test_a_gradient_reads_a_parameter_as_the_forward_pass_did(either_mode: int) -> None:
    """In PyNative it reads what the memory holds then.   Source: MindSpore 2.0 and 2.7 in both modes."""
    net = ReadFirst()
    later = 0 if either_mode == ms.GRAPH_MODE else 1
    for step in (0, 1):
        np.testing.assert_array_equal(ms.grad(net)(x()).asnumpy(), [step + later] * 3)
    np.testing.assert_array_equal(net(x()).asnumpy(), 2 * X)


def test_a_gradient_ends_at_what_was_assigned() -> None:
    class Product(Weighted):
        def construct(self, a: Tensor) -> Tensor:
            self.w = self.w * a.sum()
            return self.w * 1

    net = Product()
    of_input, of_weight = ms.grad(net, 0, net.w)(x())
    np.testing.assert_array_equal(of_input.asnumpy(), [0, 0, 0])
    np.testing.assert_array_equal(of_weight.asnumpy(), [1, 1, 1])


def test_the_dump_shows_the_assignment(sync_dump: Callable[..., Path]) -> None:
    root = sync_dump()
    net = Counter(_plain)
    for _ in range(2):
        net(x())
    sessions.close_all()
    assert execution_order(root) == ["Default/Add", "Default/Assign", "Default/Cast", "Default/Mul"]
    last = [np.load(path) for path in root.glob("Net/*/1/Parameter.n.*")]
    assert [int(array) for array in last] == [2]


def _assign(value: Any) -> Callable[[Any, Tensor], None]:
    def write(cell: Any, a: Tensor) -> None:
        cell.n = value

    return write


REFUSED: list[tuple[Any, type[Exception]]] = [
    ("text", TypeError),
    (2.5, TypeError),
    (Tensor(1.5, ms.float32), TypeError),
    (Tensor([1, 2], ms.int32), ValueError),
]


@pytest.mark.parametrize(("value", "kind"), REFUSED, ids=["str", "float", "dtype", "shape"])
def test_what_no_parameter_can_hold_is_refused(value: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        Counter(_assign(value))(x())


def test_a_graph_takes_a_number(either_mode: int) -> None:
    net = Counter(_assign(5))
    if either_mode == ms.PYNATIVE_MODE:
        with pytest.raises(TypeError, match="already exists in network, can not assign this type"):
            net(x())
    else:
        np.testing.assert_array_equal(net(x()).asnumpy(), 5 * X)


def test_outside_of_construct_a_tensor_is_written_and_the_rest_refused() -> None:
    net = Counter(_plain)
    net.n = Tensor(4, ms.int32)
    assert int(net.n) == 4 and isinstance(net.n, Parameter)
    for value in (4, np.array(4), nn.ReLU()):
        with pytest.raises(TypeError, match="already exists in network"):
            net.n = value
    net.n = Parameter(Tensor(9, ms.int32), name="m")
    assert [parameter.name for parameter in net.get_parameters()] == ["m"]


class Stateful(nn.Cell):
    def __init__(self, state: Any) -> None:
        super().__init__()
        self.state = state

    def construct(self, a: Tensor) -> Tensor:
        self.state = self.state + 1
        return a * self.state


@pytest.mark.parametrize("state", [3, Tensor(3.0, ms.float32)], ids=["int", "tensor"])
def test_a_graph_refuses_to_keep_other_state(state: Any, either_mode: int) -> None:
    net = Stateful(state)
    if either_mode == ms.GRAPH_MODE:
        with pytest.raises(TypeError, match=r"test_attributes\.py:\d+: .*should be initialized as a 'Parameter'"):
            net(x())
    else:
        assert [float(net(x())[0]) for _ in range(2)] == [4, 5]


class Keeps(nn.Cell):
    def construct(self, a: Tensor) -> Tensor:
        self.seen = a * 2
        self.shape = a.shape
        return self.seen + 1


def test_an_attribute_that_construct_alone_sets_has_its_value_after_each_run() -> None:
    net = Keeps()
    for scale in (1, 5):
        net(Tensor(X * scale))
        np.testing.assert_array_equal(net.seen.asnumpy(), 2 * scale * X)
    net(Tensor(X[:2]))
    assert net.shape == (2,) and net.seen.shape == (2,)


def test_a_graph_deletes_no_attribute(either_mode: int) -> None:
    def delete(cell: Any, a: Tensor) -> None:
        del cell.n
        cell.n = 2

    if either_mode == ms.GRAPH_MODE:
        with pytest.raises(RuntimeError, match="expected no 'del' of an attribute"):
            Counter(delete)(x())
    else:
        np.testing.assert_array_equal(Counter(delete)(x()).asnumpy(), 2 * X)


def test_assign_checks_shape_and_dtype() -> None:
    parameter = Parameter(Tensor(np.zeros(2, np.float32)), name="p")
    for value, kind in ((x(), ValueError), (1, ValueError), (Tensor([1, 2], ms.float64), TypeError)):
        with pytest.raises(kind, match=r"Assign at .*test_attributes\.py:\d+"):
            ops.assign(parameter, value)
    assert ops.assign(parameter, Tensor([1, 2], ms.int32)).asnumpy().tolist() == [1, 2]
