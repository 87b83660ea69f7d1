"""`bprop` of a cell is its gradient, wherever a gradient is taken."""

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
from tests.mindspore.networks import graphs_of

pytestmark = pytest.mark.usefixtures("either_mode")
X = np.array([1.0, 2.0, 3.0], np.float32)


def tensor(array: Any = X) -> Tensor:
    return Tensor(np.asarray(array, np.float32))


class Hundredfold(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        return x * 2

    def bprop(self, x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor]:
        return (dout * 100,)


GRADIENTS: dict[str, Callable[[nn.Cell], Any]] = {
    "grad": lambda net: ms.grad(net)(tensor()),
    "value_and_grad": lambda net: ms.value_and_grad(net)(tensor())[1],
    "GradOperation": lambda net: ops.GradOperation()(net)(tensor()),
    "jit": lambda net: ms.jit(ms.grad(net))(tensor()),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_every_way_to_a_gradient_takes_the_cells_own(name: str) -> None:
    np.testing.assert_array_equal(GRADIENTS[name](Hundredfold()).asnumpy(), [100, 100, 100])


def test_the_value_is_what_construct_gives() -> None:
    np.testing.assert_array_equal(ms.value_and_grad(Hundredfold())(tensor())[0].asnumpy(), 2 * X)


class TwoByTwo(nn.Cell):
    def construct(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return a * b, a + b

    def bprop(self, a: Tensor, b: Tensor, out: Any, dout: Any) -> tuple[Tensor, Tensor]:
        return dout[0] * 7 + dout[1], out[0] + out[1] * 0


def test_several_inputs_and_outputs() -> None:
    first, second = ms.grad(TwoByTwo(), (0, 1))(tensor(), tensor(X + 1))
    np.testing.assert_array_equal(first.asnumpy(), [8, 8, 8])
    np.testing.assert_array_equal(second.asnumpy(), [2, 6, 12])


class Scaled(nn.Cell):
    """A parameter that only the forward pass reads."""

    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(tensor([2, 2, 2]), name="w")

    def construct(self, a: Tensor) -> Tensor:
        return a * self.w

    def bprop(self, a: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor]:
        return (dout * 5,)


class Around(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.b = Scaled(), Hundredfold()
        self.v = Parameter(tensor([1, 1, 1]), name="v")

    def construct(self, a: Tensor) -> Tensor:
        return self.inner(a) * a + self.b(a * self.v)


def test_parameters_inside_get_no_gradient_and_those_outside_do() -> None:
    net = Around()
    of_input, (of_w, of_v) = ms.grad(net, 0, [net.inner.w, net.v])(tensor())
    np.testing.assert_array_equal(of_input.asnumpy(), 5 * X + 2 * X + 100)
    np.testing.assert_array_equal(of_w.asnumpy(), [0, 0, 0])
    np.testing.assert_array_equal(of_v.asnumpy(), 100 * X)


class Trained(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.d, self.b = nn.Dense(3, 1, weight_init="ones"), Hundredfold()

    def construct(self, a: Tensor) -> Tensor:
        return self.b(self.d(a)).sum()


def test_training_uses_it() -> None:
    net = Trained()
    nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.1))(tensor(np.ones((1, 3))))
    np.testing.assert_allclose(net.d.weight.asnumpy(), [[-9, -9, -9]], rtol=1e-6)


class Cube(nn.Cell):
    def construct(self, a: Tensor) -> Tensor:
        return a * a * a

    def bprop(self, a: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor]:
        return (dout * a * 10,)


def test_it_is_differentiated_itself() -> None:
    np.testing.assert_array_equal(ms.grad(ms.grad(Cube()))(tensor()).asnumpy(), [10, 10, 10])


class Nested(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.b = Hundredfold()

    def construct(self, a: Tensor, factor: int) -> Tensor:
        return self.b(a) * factor

    def bprop(self, a: Tensor, factor: int, out: Tensor, dout: Tensor) -> tuple[Any, Any]:
        return self.b(dout) * 1000, factor


def test_cells_and_plain_arguments_may_be_used_in_it() -> None:
    np.testing.assert_array_equal(ms.grad(Nested())(tensor(), 3).asnumpy(), [2000, 2000, 2000])


def _cell(bprop: Callable[..., Any], count: int = 1) -> nn.Cell:
    """A cell with another `bprop`, of one or two inputs."""
    if count == 1:
        base: Any = Hundredfold
    else:
        base = TwoByTwo
    return type("Wrong", (base,), {"bprop": bprop})()  # type: ignore[no-any-return]


def test_the_wrong_signature_is_a_type_error() -> None:
    with pytest.raises(TypeError, match=r"Wrong\.bprop: expected the arguments of construct and then out and dout, 3"):
        ms.grad(_cell(lambda self, out, dout: (dout,)))(tensor())


def test_too_few_gradients_are_refused(either_mode: int) -> None:
    kind = IndexError if either_mode == ms.GRAPH_MODE else RuntimeError
    with pytest.raises(kind, match="expected 2 gradients, one for each input, got 1"):
        ms.grad(_cell(lambda self, a, b, out, dout: (dout[0],), 2), (0, 1))(tensor(), tensor())


def test_gradients_of_another_shape_are_refused() -> None:
    with pytest.raises(RuntimeError, match=r"expected gradient 0 of shape \(3,\), got shape \(2,\)"):
        ms.grad(_cell(lambda self, a, out, dout: (dout[0:2],)))(tensor())


def test_a_single_tensor_is_taken_in_pynative_alone(either_mode: int) -> None:
    net = _cell(lambda self, a, out, dout: dout)
    if either_mode == ms.GRAPH_MODE:
        with pytest.raises(TypeError, match="expected a tuple with one gradient for each input, got Tensor"):
            ms.grad(net)(tensor())
    else:
        np.testing.assert_array_equal(ms.grad(net)(tensor()).asnumpy(), [1, 1, 1])


class ReadsParameter(Scaled):
    def bprop(self, a: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor]:
        return (dout * self.w * 10,)


def test_a_graph_takes_no_parameter_in_it(either_mode: int) -> None:
    if either_mode == ms.GRAPH_MODE:
        with pytest.raises(RuntimeError, match=r"expected no Parameter in a compiled graph, got w in .*test_own_grad"):
            ms.grad(ReadsParameter())(tensor())
    else:
        np.testing.assert_array_equal(ms.grad(ReadsParameter())(tensor()).asnumpy(), [20, 20, 20])


def test_gradients_of_parameters_are_refused() -> None:
    net = _cell(lambda self, a, out, dout: ((dout,), {"w": dout}))
    with pytest.raises(RuntimeError, match="got gradients of parameters, too"):
        ms.grad(net)(tensor())


def test_its_operators_are_dumped_in_the_scope_of_their_cell(sync_dump: Callable[..., Path]) -> None:
    """Source: order files of MindSpore 2.0 and 2.7: operators of `bprop` bear the scope of the cell."""
    root = sync_dump()
    net = Trained()
    nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.1))(tensor(np.ones((1, 3))))
    sessions.close_all()
    of_cell = [name for name in execution_order(root) if "b-Hundredfold" in name]
    assert of_cell == ["Default/network-Trained/b-Hundredfold/Mul"] * 2
    files = [path.name for path in root.rglob("Mul.*.output.0.*.npy")]
    assert len(files) == 2


def test_nothing_of_it_remains_without_a_gradient(either_mode: int) -> None:
    net = Hundredfold()
    net(tensor())
    if either_mode == ms.GRAPH_MODE:
        assert [node.op_type for node in graphs_of(net)[0].nodes] == ["Mul"]
