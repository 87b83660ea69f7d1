"""Schedules of `mindspore.experimental.optim` against PyTorch's, and how they work with the optimizers."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.mindspore import Parameter, Tensor, nn, ops
from msdump.mindspore.experimental import optim
from msdump.mindspore.experimental.optim import lr_scheduler
from tests.reference.public_names import FAMILIES

# Name -> options of MindSpore's and PyTorch's.
SCHEDULES: list[tuple[str, dict[str, Any]]] = [
    ("StepLR", {"step_size": 3, "gamma": 0.5}),
    ("StepLR", {"step_size": 1, "gamma": 0.8}),
    ("LambdaLR", {"lr_lambda": lambda epoch: 0.9**epoch}),
    ("LambdaLR", {"lr_lambda": [lambda epoch: 0.9**epoch, lambda epoch: epoch // 2 + 1]}),
]


def _optimizer(**options: Any) -> Any:
    first, second = (Parameter(Tensor(np.ones(2, np.float32)), name=name) for name in "ab")
    return optim.SGD([{"params": [first]}, {"params": second, "lr": 0.2}], lr=0.1, **options)


def _reference(**options: Any) -> Any:
    torch = pytest.importorskip("torch")
    first, second = (torch.ones(2, requires_grad=True) for _ in range(2))
    return torch.optim.SGD([{"params": [first]}, {"params": second, "lr": 0.2}], lr=0.1, **options)


def _rates(optimizer: Any) -> list[float]:
    return [float(group["lr"]) for group in optimizer.param_groups]


def _check_epochs(optimizer: Any, schedule: Any, reference: Any, theirs: Any) -> None:
    for epoch in range(12):
        np.testing.assert_allclose(_rates(optimizer), _rates(reference), rtol=2e-5, atol=1e-8, err_msg=str(epoch))
        assert [float(rate) for rate in schedule.get_last_lr()] == _rates(optimizer)
        reference.step()
        for each in (schedule, theirs):
            each.step()


@pytest.mark.parametrize(("name", "options"), SCHEDULES, ids=[name for name, _ in SCHEDULES])
def test_rates_equal_those_of_torch(name: str, options: dict[str, Any]) -> None:
    optimizer, reference = _optimizer(), _reference()
    theirs = getattr(__import__("torch").optim.lr_scheduler, name)(reference, **options)
    _check_epochs(optimizer, getattr(lr_scheduler, name)(optimizer, **options), reference, theirs)


def test_schedules_together() -> None:
    optimizer = _optimizer()
    both = [lr_scheduler.StepLR(optimizer, 2, 0.5), lr_scheduler.StepLR(optimizer, 1, 0.9)]
    for _ in range(4):
        for each in both:
            each.step()
    np.testing.assert_allclose(_rates(optimizer), [0.1 * 0.25 * 0.9**4, 0.2 * 0.25 * 0.9**4], rtol=1e-5)


def test_every_schedule_is_checked() -> None:
    own = {
        name for name in lr_scheduler.__all__ if inspect.isclass(getattr(lr_scheduler, name)) and name != "LRScheduler"
    }
    assert own == {name.split()[0] for name in FAMILIES["schedules"](ms)}


def test_a_step_reads_the_rate_and_the_options_of_now(either_mode: int) -> None:
    """Compiled graphs read the memory of the rate; for other options they are compiled again."""
    weight = Parameter(Tensor(np.array([1.0], np.float32)), name="w")
    optimizer = optim.SGD([weight], lr=0.5)
    schedule = lr_scheduler.StepLR(optimizer, 1, 0.5)
    gradient = (Tensor(np.array([1.0], np.float32)),)
    weights = []
    for change in (lambda: None, schedule.step, lambda: _change("lr", 1.0), lambda: _change("weight_decay", 1.0)):

        def _change(name: str, value: float) -> None:
            optimizer.param_groups[0][name] = value

        change()
        optimizer(gradient)
        weights.append(float(weight.asnumpy()[0]))
    assert weights == [0.5, 0.25, -0.75, -1.0]


class _Plain(optim.Optimizer):
    """As users write optimizers."""

    def __init__(self, params: Any, lr: float) -> None:
        super().__init__(params, {"lr": lr})

    def construct(self, gradients: Any) -> Any:
        for group_id, group in enumerate(self.param_groups):
            start = self.group_start_id[group_id]
            for index, param in enumerate(group["params"]):
                ops.assign(param, param - gradients[start + index] * group["lr"])
        return True


def test_an_optimizer_of_the_script_trains(either_mode: int) -> None:
    net = nn.Dense(3, 1, weight_init="ones", bias_init="zeros")
    optimizer = _Plain(net.trainable_params()[:1], 0.25)
    optimizer.add_param_group({"params": net.trainable_params()[1], "lr": 0.5})
    x = Tensor(np.ones((2, 3), np.float32))
    gradient = ms.value_and_grad(lambda x: net(x).sum(), None, optimizer.parameters)
    optimizer(gradient(x)[1])
    np.testing.assert_array_equal(net.weight.asnumpy(), [[0.5, 0.5, 0.5]])
    np.testing.assert_array_equal(net.bias.asnumpy(), [-1.0])
    assert "Parameter Group 1\n    lr: 0.5" in repr(optimizer)


def test_states_of_groups_that_come_later(either_mode: int) -> None:
    first, second = (Parameter(Tensor(np.ones(2, np.float32)), name=name) for name in "ab")
    optimizer = optim.Adam([first], 0.5)
    optimizer.add_param_group({"params": [second], "lr": 0.25})
    optimizer((Tensor(np.ones(2, np.float32)), Tensor(np.ones(2, np.float32))))
    np.testing.assert_allclose([first.asnumpy()[0], second.asnumpy()[0]], [0.5, 0.75], rtol=1e-4)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda p: optim.Adam(p, lr=-1.0), ValueError),
        (lambda p: optim.Adam(p, betas=(1.0, 0.5)), ValueError),
        (lambda p: optim.SGD(p, "fast"), TypeError),
        (lambda p: optim.SGD(p, 0.1, nesterov=True), ValueError),
        (lambda p: optim.SGD([], 0.1), ValueError),
        (lambda p: optim.SGD([{"params": p}, {"params": p}], 0.1), ValueError),
        (lambda p: optim.SGD([{"params": set(p)}], 0.1), TypeError),
        (lambda p: optim.SGD([Tensor([1.0])], 0.1), TypeError),
        (lambda p: lr_scheduler.StepLR(nn.SGD(p), 2), TypeError),
        (lambda p: lr_scheduler.StepLR(optim.SGD(p, 0.1), 2.5), TypeError),
        (lambda p: lr_scheduler.LambdaLR(optim.SGD(p, 0.1), [abs, abs]), ValueError),
    ],
)
def test_bad_arguments(make: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        make([Parameter(Tensor(np.ones(2, np.float32)), name="w")])


def test_a_schedule_in_a_compiled_function_is_refused() -> None:
    optimizer = _optimizer()
    schedule = lr_scheduler.StepLR(optimizer, 1, 0.5)

    @ms.jit
    def step(x: Any) -> Any:
        schedule.step()
        return x * 2

    with pytest.raises(RuntimeError, match=r"test_lr_scheduler\.py:\d+.*StepLR\.step\(\) between the steps"):
        step(Tensor([1.0]))
