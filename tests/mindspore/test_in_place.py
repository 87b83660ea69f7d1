"""Methods of Tensor that write to the tensor itself, against PyTorch's of the same names, in both modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.mindspore import Parameter, Tensor, nn
from tests.mindspore.conftest import execution_order

torch = pytest.importorskip("torch")

X = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]], np.float32)
OTHER = np.array([[10.0, 20.0, 30.0], [40.0, 50.0, 60.0]], np.float32)
SMALL = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]], np.float32)
MASK = np.array([[True, False, True], [False, True, False]])
ROWS, PLACES = np.array([0, 1]), np.array([[0, 1, 0], [1, 0, 1]])
TWO = np.array([7.0, 8.0], np.float32)
ONES = np.ones((2, 2), np.float32)

Call = Callable[[Any, Callable[[Any], Any]], Any]
# Method -> calls of a tensor and of what makes a tensor of the same library.
CALLS: dict[str, list[Call]] = {
    "add_": [lambda x, t: x.add_(2), lambda x, t: x.add_(t(OTHER), alpha=2)],
    "sub_": [lambda x, t: x.sub_(t(OTHER)), lambda x, t: x.sub_(2, alpha=3)],
    "mul_": [lambda x, t: x.mul_(2), lambda x, t: x.mul_(t(TWO[:1]))],
    "div_": [lambda x, t: x.div_(t(OTHER)), lambda x, t: x.div_(4, rounding_mode="floor")],
    "floor_divide_": [lambda x, t: x.floor_divide_(4)],
    "remainder_": [lambda x, t: x.remainder_(4), lambda x, t: x.remainder_(t(OTHER))],
    "clamp_": [lambda x, t: x.clamp_(0, 2), lambda x, t: x.clamp_(min=0)],
    "exp_": [lambda x, t: x.exp_()],
    "log_": [lambda x, t: x.copy_(t(SMALL)).log_()],
    "floor_": [lambda x, t: x.div_(4).floor_()],
    "tanh_": [lambda x, t: x.tanh_()],
    "erfinv_": [lambda x, t: x.copy_(t(SMALL)).erfinv_()],
    "zero_": [lambda x, t: x.zero_()],
    "fill_": [lambda x, t: x.fill_(7), lambda x, t: x.fill_(t(TWO).sum())],
    "copy_": [lambda x, t: x.copy_(t(ROWS[:1])), lambda x, t: x.copy_(t(OTHER))],
    "masked_fill_": [lambda x, t: x.masked_fill_(t(MASK), 9)],
    "fill_diagonal_": [lambda x, t: x.fill_diagonal_(9)],
    "index_add_": [lambda x, t: x.index_add_(0, t(ROWS), t(OTHER)),
                   lambda x, t: x.index_add_(0, t(ROWS), t(X), alpha=2)],
    "index_put_": [lambda x, t: x.index_put_((t(ROWS), t(ROWS)), t(TWO)),
                   lambda x, t: x.index_put_((t(ROWS), t(ROWS)), t(TWO), True)],
    "put_": [lambda x, t: x.put_(t(ROWS), t(TWO)), lambda x, t: x.put_(t(ROWS), t(TWO), accumulate=True)],
    "scatter_": [lambda x, t: x.scatter_(0, t(PLACES), t(OTHER)), lambda x, t: x.scatter_(0, t(PLACES), 5.0)],
    "scatter_add_": [lambda x, t: x.scatter_add_(0, t(PLACES), t(OTHER))],
    "addmm_": [lambda x, t: x.addmm_(t(ONES), t(OTHER)), lambda x, t: x.addmm_(t(ONES), t(OTHER), beta=2, alpha=3)],
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_the_tensor_holds_the_result(name: str) -> None:
    for call in CALLS[name]:
        ours, theirs = Tensor(X), torch.tensor(X)
        assert call(ours, Tensor) is ours
        call(theirs, torch.tensor)
        np.testing.assert_allclose(ours.asnumpy(), theirs.numpy(), rtol=1e-5, atol=1e-6)
        assert ours.dtype == ms.float32


@pytest.mark.parametrize("name", CALLS)
def test_in_a_network(name: str, either_mode: int) -> None:
    class Net(nn.Cell):
        def construct(self, x: Any, call: Any) -> Any:
            y = x * 1
            result = call(y, Tensor)
            return y, result + 1

    for call in CALLS[name]:
        theirs = torch.tensor(X)
        call(theirs, torch.tensor)
        y, plus_one = Net()(Tensor(X), call)
        np.testing.assert_allclose(y.asnumpy(), theirs.numpy(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(plus_one.asnumpy(), theirs.numpy() + 1, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", sorted(set(CALLS) - {"floor_divide_", "floor_", "put_"}))
def test_gradients_flow_through_what_is_written(name: str, either_mode: int) -> None:
    for call in CALLS[name]:
        x = torch.tensor(X, requires_grad=True)
        y = x * 1
        call(y, torch.tensor)
        (y * y).sum().backward()

        def loss(x: Any, call: Call = call) -> Any:
            y = x * 1
            call(y, Tensor)
            return (y * y).sum()

        np.testing.assert_allclose(ms.grad(loss)(Tensor(X)).asnumpy(), x.grad.numpy(), rtol=1e-4, atol=1e-5)


def test_a_parameter_is_assigned_to(either_mode: int, sync_dump: Callable[..., Any]) -> None:
    class Counter(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.total = Parameter(Tensor(np.zeros(2, np.float32)), name="total")

        def construct(self, x: Any) -> Any:
            self.total.add_(x)
            return self.total * 2

    root = sync_dump()
    net = Counter()
    net(Tensor(TWO))
    np.testing.assert_array_equal(net(Tensor(TWO)).asnumpy(), 4 * TWO)
    np.testing.assert_array_equal(net.total.asnumpy(), 2 * TWO)
    assert "Add" in {name.rpartition("/")[2] for name in execution_order(root)}


DRAWS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], bool]]] = {
    "uniform_": (lambda x: x.uniform_(2, 3), lambda a: bool(((a >= 2) & (a < 3)).all())),
    "normal_": (lambda x: x.normal_(5, 0.1), lambda a: abs(a.mean() - 5) < 0.05),
    "random_": (lambda x: x.random_(2, 5), lambda a: set(a.ravel()) == {2, 3, 4}),
    "random_ below": (lambda x: x.random_(3), lambda a: set(a.ravel()) == {0, 1, 2}),
    "random_ all": (lambda x: x.random_(), lambda a: a.min() >= 0 and a.max() < 2**24 and a.max() > 2**20),
    "exponential_": (lambda x: x.exponential_(2.0), lambda a: a.min() >= 0 and abs(a.mean() - 0.5) < 0.1),
    "bernoulli_": (lambda x: x.bernoulli_(0.25), lambda a: set(a.ravel()) == {0, 1} and 0.1 < a.mean() < 0.4),
}


@pytest.mark.parametrize("name", DRAWS)
def test_random_numbers(name: str, either_mode: int) -> None:
    draw, fits = DRAWS[name]

    class Net(nn.Cell):
        def construct(self, x: Any) -> Any:
            y = x * 1
            draw(y)
            return y

    drawn = Net()(Tensor(np.zeros((20, 30), np.float32))).asnumpy()
    assert drawn.shape == (20, 30) and drawn.dtype == np.float32
    assert fits(drawn)
    x = Tensor(np.zeros((20, 30), np.float32))
    assert draw(x) is x and fits(x.asnumpy())


@pytest.mark.parametrize(("reduce", "combine"), [("add", np.add), ("multiply", np.multiply)])
def test_scattered_elements_are_combined(reduce: str, combine: Any) -> None:
    expected = combine(X, np.take_along_axis(OTHER, PLACES, 0))
    ours = Tensor(X).scatter_(0, Tensor(PLACES), Tensor(OTHER), reduce=reduce)
    np.testing.assert_array_equal(ours.asnumpy(), expected)


def test_draws_that_write_nothing() -> None:
    x = Tensor(np.zeros((40, 50), np.float32))
    assert abs(np.median(x.cauchy(3.0, 0.5).asnumpy()) - 3) < 0.1
    assert abs(np.log(x.log_normal(1.0, 0.5).asnumpy()).mean() - 1) < 0.1
    assert 2 <= x.uniform(2.0, 3.0).asnumpy().min() < 2.1
    assert not x.asnumpy().any()


def test_results_that_do_not_fit_are_refused() -> None:
    whole = Tensor(np.array([1, 2], np.int32))
    with pytest.raises(TypeError, match="add_: expected a result that int32 can hold, got float32"):
        whole.add_(0.5)
    with pytest.raises(ValueError, match=r"add_: expected a result of shape \(2,\), got \(2, 2\)"):
        whole.add_(Tensor(np.zeros((2, 2), np.int32)))
    with pytest.raises(ValueError, match="without axes"):
        whole.fill_(whole)
    with pytest.raises(ValueError, match="'reduce'"):
        Tensor(X).scatter_(0, Tensor(PLACES), 1.0, reduce="mean")
    with pytest.raises(ValueError, match="generator"):
        Tensor(X).uniform_(generator=3)
    assert whole.asnumpy().tolist() == [1, 2]


def test_other_methods_of_2_7() -> None:
    x = Tensor(X)
    assert x.double().dtype == ms.float64 and x.byte().dtype == ms.uint8 and x.bfloat16().dtype == ms.bfloat16
    assert x.type_as(Tensor(ROWS)).dtype == ms.int64 and x.contiguous() is x and x.is_contiguous()
    np.testing.assert_array_equal(x.clone().asnumpy(), X)
    np.testing.assert_array_equal(x.new_full((2,), 3).asnumpy(), np.full(2, 3, np.float32))
    assert x.new_empty((2, 3)).shape == (2, 3)
    np.testing.assert_allclose(x.softmax(1).asnumpy(), torch.tensor(X).softmax(1).numpy(), rtol=1e-5)
    np.testing.assert_array_equal(x.fmax(Tensor(OTHER)).asnumpy(), np.fmax(X, OTHER))
    np.testing.assert_array_equal(Tensor(ROWS).bitwise_not().asnumpy(), ~ROWS)
    np.testing.assert_array_equal(x.floor_divide(2).asnumpy(), X // 2)
    np.testing.assert_array_equal(x.eq(x).asnumpy(), np.ones((2, 3), bool))
