"""Hooks of cells run around the call and its backward pass, in both modes, and are part of what is dumped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.errors import GraphError
from msdump.mindspore import Parameter, Tensor, nn, ops
from msdump.process import sessions
from tests.mindspore.conftest import execution_order

pytestmark = pytest.mark.usefixtures("either_mode")
X = np.array([1.0, -2.0, 3.0], np.float32)


def x() -> Tensor:
    return Tensor(X.copy())


class Net(nn.Cell):
    """relu(2 * a), with 2 as a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.r = nn.ReLU()
        self.w = Parameter(Tensor(np.full(3, 2, np.float32)), name="w")

    def construct(self, a: Tensor) -> Tensor:
        return self.r(a * self.w)


def values(tensor: Tensor) -> list[float]:
    return [float(value) for value in tensor.asnumpy()]


def test_a_hook_before_may_change_the_inputs_until_it_is_removed() -> None:
    net = Net()
    handle = net.r.register_forward_pre_hook(lambda cell, inputs: inputs[0] + 10)
    assert values(net(x())) == [12, 6, 16]
    handle.remove()
    handle.remove()
    assert values(net(x())) == [2, 0, 6]


def test_a_hook_after_may_change_the_output_and_its_gradient() -> None:
    net = Net()
    handle = net.r.register_forward_hook(lambda cell, inputs, output: output * 100)
    assert values(net(x())) == [200, 0, 600]
    assert values(ms.grad(net)(x())) == [200, 0, 200]
    handle.remove()
    assert values(ms.grad(net)(x())) == [2, 0, 2]


def test_hooks_run_in_the_order_in_which_they_came() -> None:
    net, seen = Net(), []
    for name in ("after 1", "after 2"):
        net.r.register_forward_hook(lambda cell, inputs, output, name=name: seen.append(name))
    for name in ("before 1", "before 2"):
        net.r.register_forward_pre_hook(lambda cell, inputs, name=name: seen.append(name))
    for name in ("gradient 1", "gradient 2"):
        net.r.register_backward_hook(lambda cell, of_inputs, of_outputs, name=name: seen.append(name))
    net.r.register_backward_pre_hook(lambda cell, of_outputs: seen.append("before gradient"))
    ms.grad(net)(x())
    assert seen == ["before 1", "before 2", "after 1", "after 2", "before gradient", "gradient 1", "gradient 2"]


def test_hooks_of_the_cell_that_is_called_run_too() -> None:
    net = Net()
    net.register_forward_hook(lambda cell, inputs, output: output * 100)
    assert values(net(x())) == [200, 0, 600]


def test_keywords_are_shown_when_wanted() -> None:
    class Scale(nn.Cell):
        def construct(self, a: Tensor, by: int = 1) -> Tensor:
            return a * by

    net = Scale()
    net.register_forward_pre_hook(lambda cell, args, kwargs: (args, {"by": kwargs["by"] + 1}), with_kwargs=True)
    net.register_forward_hook(lambda cell, args, kwargs, output: output * kwargs["by"], with_kwargs=True)
    assert values(net(x(), by=2)) == [9, -18, 27]


@pytest.mark.parametrize("is_tuple", [True, False])
def test_backward_hooks_may_change_gradients(is_tuple: bool) -> None:
    net = Net()
    after = net.r.register_backward_hook(
        lambda cell, of_inputs, of_outputs: (of_inputs[0] * 100,) if is_tuple else of_inputs[0] * 100
    )
    before = net.r.register_backward_pre_hook(
        lambda cell, of_outputs: (of_outputs[0] * 10,) if is_tuple else of_outputs[0] * 10
    )
    assert values(ms.grad(net)(x())) == [2000, 0, 2000]
    after.remove()
    assert values(ms.grad(net)(x())) == [20, 0, 20]
    before.remove()
    assert values(ms.grad(net)(x())) == [2, 0, 2]


class Two(nn.Cell):
    def construct(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return a * b, a + b


class AroundTwo(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.two = Two()

    def construct(self, a: Tensor, b: Tensor) -> Tensor:
        product, total = self.two(a, b)
        return product * 2 + total


def test_backward_hooks_see_all_gradients(either_mode: int) -> None:
    if either_mode == ms.GRAPH_MODE:
        pytest.skip("values are there when the graph runs")
    net, seen = AroundTwo(), []
    net.two.register_backward_hook(lambda cell, of_inputs, of_outputs: seen.append((of_inputs, of_outputs)))
    ms.grad(net, (0, 1))(x(), Tensor(X + 1))
    (((of_a, of_b), (of_product, of_total)),) = seen
    assert (values(of_a), values(of_b)) == ([5, -1, 9], [3, -3, 7])
    assert (values(of_product), values(of_total)) == ([2, 2, 2], [1, 1, 1])


def test_no_backward_hook_runs_without_a_gradient() -> None:
    net, seen = Net(), []
    net.r.register_backward_hook(lambda cell, of_inputs, of_outputs: seen.append(1))
    net(x())
    assert seen == []


WRONG: list[tuple[Callable[..., Any], type[Exception]]] = [
    (lambda cell, of_inputs, of_outputs: (of_inputs[0], of_inputs[0]), TypeError),
    (lambda cell, of_inputs, of_outputs: 5, TypeError),
    (lambda cell, of_inputs, of_outputs: of_inputs[0][0:2], ValueError),
]


@pytest.mark.parametrize(("hook", "kind"), WRONG, ids=["two", "number", "shape"])
def test_gradients_that_do_not_fit_are_refused(hook: Callable[..., Any], kind: type[Exception]) -> None:
    net = Net()
    net.r.register_backward_hook(hook)
    with pytest.raises(kind, match="ReLU: backward hook: expected"):
        ms.grad(net)(x())


@pytest.mark.parametrize("kind", ["forward_pre_hook", "forward_hook", "backward_pre_hook", "backward_hook"])
def test_a_hook_is_a_function(kind: str) -> None:
    with pytest.raises(TypeError, match=f"register_{kind}.*must be python function, but got <class 'int'>"):
        getattr(Net(), f"register_{kind}")(5)


def test_operators_of_hooks_are_dumped(sync_dump: Callable[..., Path]) -> None:
    root = sync_dump()
    net = Net()
    net.r.register_forward_hook(lambda cell, inputs, output: output * 100)
    net.r.register_backward_hook(lambda cell, of_inputs, of_outputs: of_inputs[0] + 1)
    step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.1))
    step(x())
    sessions.close_all()
    names = execution_order(root)
    assert names.count("Default/network-Net/r-ReLU/Mul") == 1
    assert names.count("Default/network-Net/r-ReLU/Add") == 1


class Hooked(nn.Cell):
    """Registers a hook after the tensor has been read once."""

    def __init__(self, *hooks: Callable[..., Any]) -> None:
        super().__init__()
        self.hooks = hooks

    def construct(self, a: Tensor) -> Tensor:
        y = a * 2
        z = y * 3
        for hook in self.hooks:
            y.register_hook(hook)
        return z + y


def test_a_hook_of_a_tensor_sees_its_whole_gradient() -> None:
    """Source: MindSpore 2.7: also what came through uses before the hook."""
    assert values(ms.grad(Hooked(lambda gradient: gradient * 10))(x())) == [80, 80, 80]
    assert values(ms.grad(Hooked(lambda g: g + 1, lambda g: g * 10))(x())) == [100, 100, 100]
    assert values(ms.grad(Hooked(lambda gradient: None))(x())) == [8, 8, 8]
    assert values(Hooked(lambda gradient: gradient * 10)(x())) == [8, -16, 24]


def test_a_hook_of_a_parameter_stays_until_it_is_removed() -> None:
    net = Net()
    gradient = ms.grad(net, None, net.trainable_params())
    assert values(gradient(x())[0]) == [1, 0, 3]
    handle = net.w.register_hook(lambda g: g * 10)
    assert values(gradient(x())[0]) == [10, 0, 30]
    nn.TrainOneStepCell(net, nn.SGD([net.w], 0.1))(x())
    np.testing.assert_allclose(net.w.asnumpy(), [1, 2, -1], rtol=1e-6)
    handle.remove()
    net.w.set_data(Tensor(np.full(3, 2, np.float32)))
    assert values(gradient(x())[0]) == [1, 0, 3]


def test_a_hook_of_an_argument(either_mode: int) -> None:
    tensor, seen = x(), []
    handle = tensor.register_hook(lambda g: seen.append(g) or g * 5)  # type: ignore[func-returns-value]
    expected = 2 * X if either_mode == ms.GRAPH_MODE else 10 * X
    np.testing.assert_array_equal(ms.grad(lambda a: a * a)(tensor).asnumpy(), expected)
    handle.remove()
    np.testing.assert_array_equal(ms.grad(lambda a: a * a)(tensor).asnumpy(), 2 * X)


@pytest.mark.parametrize("hook", [lambda g: 5, lambda g: g[0:2]])
def test_what_a_hook_of_a_tensor_returns_is_checked(hook: Callable[..., Any]) -> None:
    with pytest.raises((TypeError, ValueError), match=r"Tensor\.register_hook: expected"):
        ms.grad(Hooked(hook))(x())
    with pytest.raises(TypeError, match="must be python function"):
        x().register_hook(5)  # type: ignore[arg-type]


class Through(nn.Cell):
    def __init__(self, operator: Any) -> None:
        super().__init__()
        self.operator = operator

    def construct(self, a: Tensor) -> Tensor:
        return self.operator(a * 2) * 3


def test_insert_gradient_of_works_in_both_modes() -> None:
    assert values(ms.grad(Through(ops.InsertGradientOf(lambda g: g * 10)))(x())) == [60, 60, 60]
    assert values(ms.grad(Through(ops.InsertGradientOf(lambda g: None)))(x())) == [6, 6, 6]
    assert values(Through(ops.InsertGradientOf(lambda g: g * 10))(x())) == [6, -12, 18]


def test_hook_backward_works_in_pynative(either_mode: int, caplog: pytest.LogCaptureFixture) -> None:
    """Source: MindSpore 2.0 and 2.7: in GRAPH_MODE it hands on what it gets."""
    seen: list[Any] = []
    net = Through(ops.HookBackward(lambda gradients: (seen.append(gradients), gradients[0] * 10)[1]))
    found = values(ms.grad(net)(x()))
    if either_mode == ms.GRAPH_MODE:
        assert (found, seen) == ([6, 6, 6], [])
        assert "HookBackward has no effect in GRAPH_MODE" in caplog.text
    else:
        assert (found, len(seen), len(seen[0])) == ([60, 60, 60], 1, 1)
    with pytest.raises(TypeError, match="must be python function"):
        ops.HookBackward(5)  # type: ignore[arg-type]


def test_a_branch_of_a_graph_takes_no_hook_of_a_tensor(either_mode: int) -> None:
    class Branches(nn.Cell):
        def construct(self, a: Tensor) -> Tensor:
            y = a * 2
            if a.sum() > 0:
                y = a * 3
                y.register_hook(lambda g: g * 10)
            return y * 1

    if either_mode == ms.GRAPH_MODE:
        with pytest.raises(GraphError, match=r"test_hooks\.py:\d+: .*expected a tensor outside of branches"):
            ms.grad(Branches())(x())
    else:
        assert values(ms.grad(Branches())(x())) == [30, 30, 30]
