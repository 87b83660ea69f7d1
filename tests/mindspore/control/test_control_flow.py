"""Control flow on tensors: a compiled program does what Python does with the same source."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msdump.mindspore as ms
from msdump.mindspore import nn, ops
from tests.mindspore.control.programs import load, programs


def _results(net: Any, args: list[Any], mode: int) -> list[np.ndarray[Any, Any]]:
    ms.set_context(mode=mode)

    def loss(x: Any, y: Any, n: Any, m: Any) -> Any:
        first, second = net(x, y, n, m)
        return (first * first).sum() * 0.5, second

    outputs = net(*args)
    both = ops.value_and_grad(loss, (0, 1), net.trainable_params(), has_aux=True)
    (value, aux), (of_inputs, of_weights) = both(*args)
    return [each.asnumpy() for each in (*outputs, value, aux, *of_inputs, *of_weights, net.state)]


@settings(max_examples=25)
@given(programs(), st.lists(st.integers(-2, 4), min_size=2, max_size=2), st.floats(-2, 2, width=16))
def test_a_compiled_program_gives_the_values_and_gradients_of_pynative(
    source: str, counts: list[int], start: float
) -> None:
    make = load(source)
    args = [
        ms.Tensor(np.array([start, 0.5], np.float32)),
        ms.Tensor(np.array([1.0, -start], np.float32)),
        *(ms.Tensor(count, ms.int32) for count in counts),
    ]
    eager = _results(make(), args, ms.PYNATIVE_MODE)
    compiled = _results(make(), args, ms.GRAPH_MODE)
    for one, other in zip(eager, compiled, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-5)


def _second_gradients(net: Any, args: list[Any], mode: int) -> list[np.ndarray[Any, Any]]:
    ms.set_context(mode=mode)

    def loss(x: Any, y: Any, n: Any, m: Any) -> Any:
        first, _ = net(x, y, n, m)
        return (first * first).sum() * 0.5

    def penalty(x: Any, y: Any, n: Any, m: Any) -> Any:
        of_x, of_y = ops.grad(loss, (0, 1))(x, y, n, m)
        return (of_x * ms.Tensor([1.0, -0.5])).sum() + (of_y * of_y).sum()

    of_inputs, of_weights = ops.grad(penalty, (0, 1), net.trainable_params())(*args)
    return [each.asnumpy() for each in (*of_inputs, *of_weights)]


@settings(max_examples=25)
@given(programs(), st.lists(st.integers(-2, 4), min_size=2, max_size=2), st.floats(-2, 2, width=16))
def test_a_compiled_program_gives_the_second_gradients_of_pynative(
    source: str, counts: list[int], start: float
) -> None:
    make = load(source)
    args = [
        ms.Tensor(np.array([start, 0.5], np.float32)),
        ms.Tensor(np.array([1.0, -start], np.float32)),
        *(ms.Tensor(count, ms.int32) for count in counts),
    ]
    eager = _second_gradients(make(), args, ms.PYNATIVE_MODE)
    compiled = _second_gradients(make(), args, ms.GRAPH_MODE)
    for one, other in zip(eager, compiled, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-3, atol=1e-4)


def _walk(sin: Any, x: Any, w: Any, n: Any) -> Any:
    """A branch in a loop that a condition leaves, then a counted loop; x and w have three elements."""
    while n < 9:
        n = n + 1
        if x.sum() > 1:
            x = sin(x * w) * w
        else:
            x = x * x + w * 0.5
        if n > 3:
            break
    for i in range(n):
        x = x * w + sin(x) * i
    return x


@settings(max_examples=4)
@given(st.lists(st.floats(-1.5, 1.5, width=16), min_size=6, max_size=6), st.integers(0, 3))
def test_gradients_of_higher_order_equal_those_of_torch(numbers: list[float], count: int) -> None:
    torch = pytest.importorskip("torch")
    starts = np.array(numbers, np.float32).reshape(2, 3)
    factor = np.array([1.0, -0.5, 2.0], np.float32)
    free = [torch.tensor(each, requires_grad=True, dtype=torch.float64) for each in starts]
    expected, loss = [], _walk(torch.sin, *free, count)
    for _ in range(3):
        expected.append(torch.autograd.grad((loss * torch.tensor(factor)).sum(), free, create_graph=True))
        loss = expected[-1][0] + expected[-1][1]

    def jitted(x: Any, w: Any, n: Any) -> Any:
        return _walk(ops.sin, x, w, n)

    for mode, function in ((ms.GRAPH_MODE, jitted), (ms.PYNATIVE_MODE, jitted), (ms.PYNATIVE_MODE, ms.jit(jitted))):
        ms.set_context(mode=mode)
        gradient = function
        for order in range(3):
            gradient = _gradient_of(gradient, ms.Tensor(factor), is_sum=order > 0)
            compiled = ms.jit(gradient) if mode == ms.GRAPH_MODE else gradient
            answer = compiled(*map(ms.Tensor, starts), ms.Tensor(count, ms.int32))
            for one, other in zip(answer, expected[order], strict=True):
                gradients = other.detach().numpy()
                bound = 1e-4 * max(1.0, np.abs(gradients).max())
                np.testing.assert_allclose(one.asnumpy(), gradients, rtol=1e-3, atol=bound)


def _gradient_of(function: Any, factor: Any, is_sum: bool) -> Any:
    def loss(x: Any, w: Any, n: Any) -> Any:
        result = function(x, w, n)
        return ((result[0] + result[1] if is_sum else result) * factor).sum()

    return ops.grad(loss, (0, 1))


class Branches(nn.Cell):
    """Weights, statistics of a BatchNorm and a counter in branches, and weights in a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Dense(3, 3), nn.Dense(3, 3)
        self.norm = nn.BatchNorm1d(3)
        self.count = ms.Parameter(ms.Tensor(0.0, ms.float32), name="count", requires_grad=False)

    def construct(self, x: Any, n: Any) -> Any:
        h = self.first(x)
        if h.sum() > 0:
            h = self.norm(self.second(h))
            self.count = self.count + 1
        else:
            h = ops.relu(h) + h * 0.1
        while n < 2:
            h = self.second(ops.tanh(h))
            n = n + 1
        return h


class Training(nn.Cell):
    """A step that leaves the weights alone where the loss is too large."""

    def __init__(self, net: nn.Cell) -> None:
        super().__init__()
        self.net = net
        self.optimizer = nn.Adam(net.trainable_params(), 0.01)
        self.gradient = ops.value_and_grad(self.loss, None, self.optimizer.parameters)

    def loss(self, x: Any, n: Any) -> Any:
        return ops.square(self.net(x, n)).sum()

    def construct(self, x: Any, n: Any) -> Any:
        loss, gradients = self.gradient(x, n)
        if loss < 25:
            self.optimizer(gradients)
        return loss


def _trained(mode: int) -> tuple[list[float], list[np.ndarray[Any, Any]], float]:
    ms.set_context(mode=mode)
    ms.set_seed(1)
    net = Branches().set_train()
    for number, parameter in enumerate(net.get_parameters()):
        if parameter.ndim:
            values = np.random.default_rng(number).normal(size=parameter.shape).astype(np.float32)
            parameter.set_data(ms.Tensor(np.abs(values) if "moving" in parameter.name else values))
    step = Training(net)
    random = np.random.default_rng(3)
    losses = []
    for number in range(6):
        x = ms.Tensor(random.normal(size=(4, 3)).astype(np.float32))
        losses.append(float(step(x, ms.Tensor(number % 3, ms.int32))))
    return losses, [parameter.asnumpy() for parameter in step.get_parameters()], float(net.count)


def test_a_net_with_branches_and_loops_trains_as_in_pynative() -> None:
    eager, compiled = _trained(ms.PYNATIVE_MODE), _trained(ms.GRAPH_MODE)
    assert 0 < eager[2] < 6
    assert min(eager[0]) < 25 < max(eager[0])
    assert eager[2] == compiled[2]
    np.testing.assert_allclose(compiled[0], eager[0], rtol=1e-4)
    for one, other in zip(eager[1], compiled[1], strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-5)


def test_every_run_of_a_body_draws_anew() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)

    class Dropping(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.dropout = nn.Dropout(p=0.5)

        def construct(self, x: Any, n: Any) -> Any:
            first, last = x, x
            while n < 2:
                first, last = last, self.dropout(x)
                n = n + 1
            return first, last

    first, last = Dropping().set_train()(ms.Tensor(np.ones(64, np.float32)), ms.Tensor(0, ms.int32))
    assert set(first.asnumpy()) == set(last.asnumpy()) == {0.0, 2.0}
    assert not np.array_equal(first.asnumpy(), last.asnumpy())


class Hundredfold(nn.Cell):
    def construct(self, x: Any) -> Any:
        return x * 2

    def bprop(self, x: Any, out: Any, dout: Any) -> Any:
        return (dout * 100,)


@pytest.mark.usefixtures("either_mode")
def test_a_cell_with_its_own_gradient_runs_in_branches_and_loops() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Hundredfold()

        def construct(self, x: Any, n: Any) -> Any:
            if x.sum() > 0:
                x = self.inner(x)
            while n > 0:
                x = self.inner(x)
                n = n - 1
            return x

    gradient = ms.grad(Net())
    for value, runs in ((1.0, 3), (-1.0, 2)):
        answer = gradient(ms.Tensor([value, 0.0]), ms.Tensor(2, ms.int32))
        assert answer.asnumpy().tolist() == [100.0**runs] * 2


@pytest.mark.usefixtures("either_mode")
def test_elements_are_written_in_branches_and_loops() -> None:
    """With indices that the loop counts, and only where the branch runs; the gradient follows."""

    class Net(nn.Cell):
        def construct(self, x: Any, y: Any, n: Any) -> Any:
            x = x * 1
            i = ops.zeros_like(n)
            while i < n:
                x[i] = x[i] * 3
                x[:, 0:2] += y
                i += 1
            if n > 1:
                x[1], kept = 5.0, x
            else:
                kept = x * 2
            return x + kept

    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((2, 2), np.float32)
    for count in (1, 2):
        expected = x.copy()
        for row in range(count):
            expected[row] *= 3
            expected[:, :2] += y
        weight = np.full((2, 3), 3.0)
        weight[:count] *= 3
        if count > 1:
            expected[1] = 5
            expected *= 2
            weight *= 2 / 3
            weight[1] = 0
        else:
            expected *= 3
        args = ms.Tensor(x), ms.Tensor(y), ms.Tensor(count, ms.int32)
        net = Net()
        np.testing.assert_allclose(net(*args).asnumpy(), expected)
        np.testing.assert_allclose(ms.grad(net)(*args).asnumpy(), weight)
