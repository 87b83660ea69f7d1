"""Training steps that scripts write: subclasses of TrainOneStepCell, gradients of several outputs."""

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


class OwnStep(nn.TrainOneStepCell):
    """What MindSpore's documentation shows."""

    def construct(self, *inputs: Any) -> Any:
        loss = self.network(*inputs)
        sens = ops.fill(loss.dtype, loss.shape, self.sens)
        gradients = self.grad(self.network, self.weights)(*inputs, sens)
        gradients = self.grad_reducer(gradients)
        return ops.depend(loss, self.optimizer(gradients))


class Weighted(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(Tensor(np.ones(3, np.float32)), name="w")

    def construct(self, a: Tensor) -> Tensor:
        return (a * self.w).sum()


def test_a_subclass_takes_the_gradients_itself() -> None:
    net = Weighted()
    step = OwnStep(net, nn.SGD(net.trainable_params(), 0.1), sens=2.0)
    assert float(step(x())) == 6
    np.testing.assert_allclose(net.w.asnumpy(), 1 - 0.2 * X, rtol=1e-6)


class Noisy(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense, self.norm, self.drop = nn.Dense(3, 2), nn.BatchNorm1d(2), nn.Dropout(p=0.5)
        self.calls = Parameter(Tensor(0, ms.int32), name="calls", requires_grad=False)

    def construct(self, a: Tensor) -> Tensor:
        self.calls += 1
        return self.drop(self.norm(self.dense(a))).sum()


@pytest.mark.parametrize("is_dumped", [False, True])
def test_the_network_runs_once_in_such_a_step(sync_dump: Callable[..., Path], is_dumped: bool) -> None:
    """Source: order files of MindSpore 2.0 and 2.7, and calls of construct in PyNative."""
    root = sync_dump() if is_dumped else None
    net = Noisy()
    step = OwnStep(net, nn.SGD(net.trainable_params(), 0.1)).set_train()
    for count in (1, 2):
        step(Tensor(np.arange(12, dtype=np.float32).reshape(4, 3)))
        assert int(net.calls) == count
    if root is not None:
        sessions.close_all()
        names = [name.rpartition("/")[2] for name in execution_order(root)]
        assert [names.count(each) for each in ("Dropout", "DropoutGrad", "BatchNorm", "SGD")] == [1, 1, 1, 4]


def test_what_a_step_leaves_is_no_part_of_it() -> None:
    net = Weighted()
    loss = OwnStep(net, nn.SGD(net.trainable_params(), 0.1))(x())
    loss[()] = 5.0
    assert float(loss) == 5


def test_the_network_runs_again_after_its_parameters_were_written() -> None:
    class Late(OwnStep):
        def construct(self, *inputs: Any) -> Any:
            loss = self.network(*inputs)
            self.network.k = self.network.k + 1
            gradients = self.grad_no_sens(self.network, self.weights)(*inputs)
            self.optimizer(gradients)
            return loss

    class Scaled(Weighted):
        def __init__(self) -> None:
            super().__init__()
            self.k = Parameter(Tensor(1.0, ms.float32), name="k", requires_grad=False)

        def construct(self, a: Tensor) -> Tensor:
            return (a * self.w).sum() * self.k

    net = Scaled()
    assert float(Late(net, nn.SGD(net.trainable_params(), 0.1))(x())) == 6
    np.testing.assert_allclose(net.w.asnumpy(), 1 - 0.2 * X, rtol=1e-6)


class Several(nn.Cell):
    def construct(self, a: Tensor, b: Tensor) -> Any:
        return a * b, a + b, (a * 2, b), 5, a > b


def test_the_gradient_of_several_outputs_is_that_of_their_sum() -> None:
    of_a, of_b = ms.grad(Several(), (0, 1))(x(), Tensor(X + 1))
    np.testing.assert_array_equal(of_a.asnumpy(), X + 1 + 1 + 2)
    np.testing.assert_array_equal(of_b.asnumpy(), X + 1 + 1)


def test_with_aux_the_first_output_is_the_loss() -> None:
    of_a, rest = ms.grad(Several(), 0, has_aux=True)(x(), Tensor(X + 1))
    np.testing.assert_array_equal(of_a.asnumpy(), X + 1)
    assert len(rest) == 4


def test_each_output_has_its_own_sens() -> None:
    class Pair(nn.Cell):
        def construct(self, a: Tensor) -> Any:
            return a * a, [a * 3]

    (of_a,) = ops.GradOperation(get_all=True, sens_param=True)(Pair())(x(), (x(), [Tensor(X + 1)]))
    np.testing.assert_array_equal(of_a.asnumpy(), 2 * X * X + 3 * (X + 1))
    with pytest.raises(ValueError, match="expected one gradient for each of the 2 outputs, got 1"):
        ops.GradOperation(get_all=True, sens_param=True)(Pair())(x(), (x(),))


@pytest.mark.parametrize("outputs", [lambda a: {"u": a * 3, "v": a * a}, lambda a: [a * 3, a * a]])
def test_lists_and_dicts_are_outputs_too(outputs: Callable[[Tensor], Any]) -> None:
    np.testing.assert_array_equal(ms.grad(outputs)(x()).asnumpy(), 3 + 2 * X)


def test_an_output_that_comes_twice_counts_twice() -> None:
    np.testing.assert_array_equal(ms.grad(lambda a: (a, a))(x()).asnumpy(), [2, 2, 2])


def test_training_adds_up_several_outputs() -> None:
    class Two(Weighted):
        def construct(self, a: Tensor) -> Any:
            return (a * self.w).sum(), self.w * 2

    net = Two()
    first, _ = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.1))(x())
    assert float(first) == 6
    np.testing.assert_allclose(net.w.asnumpy(), 1 - 0.1 * (X + 2), rtol=1e-6)


def test_cells_know_their_phase_and_their_place() -> None:
    net = Noisy()
    assert (net.phase, net.set_train(False).phase, net.set_train().dense.phase) == ("train", "predict", "train")
    net.update_parameters_name("left.")
    net.update_cell_prefix()
    assert (net.param_prefix, net.dense.param_prefix, net.dense.weight.name) == ("", "dense", "left.dense.weight")


def test_a_layer_without_bias_has_none() -> None:
    for layer in (nn.Conv2d(1, 1, 3), nn.Dense(2, 2, has_bias=False), nn.Conv2dTranspose(1, 1, 3)):
        assert layer.bias is None
        assert [parameter.name for parameter in layer.get_parameters()] == ["weight"]
