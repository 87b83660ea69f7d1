"""Optimizers and schedules give the weights that MindSpore gave (2.0 and 2.7 on a CPU agree), in both modes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from msdump.mindspore import Parameter, Tensor, nn, ops
from msdump.mindspore.nn.optim.optimizer import opt_init_args_register
from tests.mindspore.nn.optimizer_cases import FACTORS, GRADIENT, SCALE, SCALE_GRADIENT, WEIGHT, cases

CASES = cases(nn)
# Name -> (weights after three steps, names of what the optimizer keeps).
EXPECTED: dict[str, tuple[list[float], str]] = {
    "adagrad": (
        [0.3931017, -1.096814, 1.837551, 9.745359e-06, 1.045748, -0.858816],
        "learning_rate accum.w accum.gamma",
    ),
    "adadelta": (
        [0.4973082, -1.247308, 1.997308, 0.1223081, 1.002691, -0.7526919],
        "learning_rate accum.w accum.gamma accum_update.w accum_update.gamma",
    ),
    "adam": (
        [0.1755678, -0.9110647, 1.678334, -0.1702512, 1.295679, -1.04568],
        "learning_rate beta1_power beta2_power moment1.w moment1.gamma moment2.w moment2.gamma",
    ),
    "amsgrad": (
        [0.3075559, -1.057556, 1.807556, -0.06744426, 1.192444, -0.9424443],
        "learning_rate beta1_power beta2_power moment1.w moment1.gamma moment2.w moment2.gamma vhat.w vhat.gamma",
    ),
    "lazy_adam": (
        [0.3075559, -1.057556, 1.807556, -0.06744426, 1.192444, -0.9424443],
        "learning_rate beta1_power beta2_power moment1.w moment1.gamma moment2.w moment2.gamma",
    ),
    "adam_weight_decay": (
        [-0.2847899, -0.398285, 1.081371, -0.6263905, 1.755054, -1.505161],
        "learning_rate adam_m.w adam_m.gamma adam_v.w adam_v.gamma",
    ),
    "ada_factor": (
        [0.4987476, -1.245774, 1.997495, 0.1228872, 1.002166, -0.7521662],
        "learning_rate exp_avg.w exp_avg.gamma exp_avg_sq_row_w exp_avg_sq_row_gamma exp_avg_sq_col_w "
        "exp_avg_sq_col_gamma exp_avg_sq_w exp_avg_sq_gamma afactor_step",
    ),
    "ada_factor_rate": (
        [0.4289511, -1.023254, 1.828201, 0.02647763, 1.102701, -0.860126],
        "learning_rate exp_avg_w exp_avg_gamma exp_avg_sq_row_w exp_avg_sq_row_gamma exp_avg_sq_col_w "
        "exp_avg_sq_col_gamma exp_avg_sq_w exp_avg_sq_gamma afactor_step",
    ),
    "ftrl": (
        [-0.3195907, 0.04152417, 0.7747024, -0.5100342, 0.1713568, -0.6847445],
        "learning_rate moments.w moments.gamma linear.w linear.gamma",
    ),
    "decay_cell": (
        [0.3792838, -0.9597395, 1.471016, 0.03140625, 1.01175, -0.797],
        "learning_rate momentum moments.w moments.gamma",
    ),
    "groups": (
        [0.07100001, -0.2635, -0.06000006, -0.45525, 0.908711, -0.8309571],
        "learning_rate_group_0 learning_rate momentum moments.w moments.gamma",
    ),
    "groups_of_schedules": (
        [0.4465767, -1.147747, 1.770043, -0.01901404, 1.034968, -0.8842604],
        "mean_square.w mean_square.gamma moment.w moment.gamma",
    ),
    "natural_exp": (
        [0.406, -1.062, 1.436, -0.157, 1.047, -0.938],
        "momentum accum.w accum.gamma stat.w stat.gamma",
    ),
}


def _tensor(values: Any, factor: float = 1.0) -> Tensor:
    return Tensor(np.array(values, np.float32) * np.float32(factor))


def _parameters() -> list[Parameter]:
    return [Parameter(_tensor(WEIGHT), "w"), Parameter(_tensor(SCALE), "gamma")]


def _trained(make: Any) -> tuple[np.ndarray[Any, Any], Any]:
    """All weights after the steps of `optimizer_cases`, and the optimizer."""
    parameters = _parameters()
    optimizer = make(parameters)
    for factor in FACTORS:
        optimizer((_tensor(GRADIENT, factor), _tensor(SCALE_GRADIENT, factor)))
    return np.concatenate([each.asnumpy().ravel() for each in parameters]), optimizer


@pytest.mark.parametrize("name", EXPECTED)
def test_weights_are_those_of_mindspore(name: str, either_mode: int) -> None:
    weights, optimizer = _trained(CASES[name])
    expected, names = EXPECTED[name]
    np.testing.assert_allclose(weights, expected, rtol=2e-5, atol=2e-6)
    kept = {each.name for each in optimizer.get_parameters()}
    assert kept == {*names.split(), "global_step", "gamma", "w"}


def test_shapes_of_beta_powers() -> None:
    """Source: Adam's powers are scalars, those of LazyAdam have one element."""
    assert nn.Adam(_parameters()).beta1_power.shape == ()
    assert nn.LazyAdam(_parameters()).beta1_power.shape == (1,)


class _Descent(nn.Optimizer):
    """As users write optimizers: out of the methods of the base class."""

    def construct(self, gradients: Any) -> Any:
        rate = self.get_lr()
        gradients = self.scale_grad(self.gradients_centralization(self.decay_weight(gradients)))
        for weight, gradient in zip(self.parameters, gradients, strict=True):
            ops.assign_sub(weight, rate * gradient)
        return True


def test_an_optimizer_of_the_script(either_mode: int) -> None:
    weights, _ = _trained(lambda p: _Descent(0.1, p, 0.1, 4.0))
    same, _ = _trained(lambda p: nn.Momentum(p, 0.1, 0.0, 0.1, 4.0))
    np.testing.assert_allclose(weights, same, rtol=1e-6)


def test_rates_of_parameters() -> None:
    first, second = _parameters()
    optimizer = nn.Momentum([{"params": [first], "lr": 0.5}, {"params": [second]}], 0.1, 0.9)
    assert [float(rate) for rate in optimizer.get_lr_parameter([first, second])] == pytest.approx([0.5, 0.1])
    assert optimizer.is_group_lr and not optimizer.dynamic_lr
    single = nn.Momentum([first], 0.25, 0.9)
    assert float(single.get_lr()) == float(single.learning_rate) == 0.25


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda p: nn.SGD(p, weight_decay=nn.WarmUpLR(0.1, 2)), TypeError),
        (lambda p: nn.Adam(p, beta1=1), TypeError),
        (lambda p: nn.Adam(p, beta1=1.5), ValueError),
        (lambda p: nn.Momentum([{"params": p, "decay": 1}], 0.1, 0.9), KeyError),
        (lambda p: nn.Momentum(p, 0.1, 0.9, weight_decay="much"), TypeError),
        (lambda p: nn.FTRL(p, learning_rate=[0.1, 0.2]), ValueError),
        (lambda p: nn.AdaFactor(p, 0.1), ValueError),
        (lambda p: nn.AdaFactor(p, relative_step=False), ValueError),
        (lambda p: nn.AdaFactor(p, 0.1, relative_step=False, warmup_init=True), ValueError),
        (lambda p: nn.AdaFactor(p, decay_rate=1.0), ValueError),
        (lambda p: nn.AdaFactor(p, eps=(1e-30,)), ValueError),
        (lambda p: nn.thor(p), NotImplementedError),
    ],
)
def test_bad_arguments(make: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        make(_parameters())


def test_lamb_steps_as_long_as_the_weight(either_mode: int) -> None:
    """Source: formula of MindSpore's Lamb, which has no kernel on a CPU there."""
    weights, _ = _trained(lambda p: nn.Lamb(p, 0.1, weight_decay=0.1))
    expected = []
    for start, gradient, decay in ((WEIGHT, GRADIENT, 0.1), (SCALE, SCALE_GRADIENT, 0.0)):
        weight = np.array(start, np.float64)
        mean, square = np.zeros_like(weight), np.zeros_like(weight)
        for number, factor in enumerate(FACTORS, 1):
            g = np.array(gradient) * factor
            mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g * g
            step = mean / (1 - 0.9**number) / (np.sqrt(square / (1 - 0.999**number)) + 1e-6) + decay * weight
            weight = weight - 0.1 * np.linalg.norm(weight) / np.linalg.norm(step) * step
        expected.append(weight.ravel())
    np.testing.assert_allclose(weights, np.concatenate(expected), rtol=1e-4)


SCHEDULES: dict[str, Any] = {
    "exponential": (nn.ExponentialDecayLR, nn.exponential_decay_lr, (0.5, 0.8)),
    "natural": (nn.NaturalExpDecayLR, nn.natural_exp_decay_lr, (0.5, 0.8)),
    "inverse": (nn.InverseDecayLR, nn.inverse_decay_lr, (0.5, 0.8)),
}


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("is_stair", [False, True])
def test_schedules_and_lists_agree(name: str, is_stair: bool, either_mode: int) -> None:
    schedule, as_list, numbers = SCHEDULES[name]
    # Source: the list of natural exponents counts epochs, the others parts of the decay; here both are 1.
    rate = schedule(*numbers, 1, is_stair)
    found = [float(rate(Tensor(step))) for step in range(6)]
    np.testing.assert_allclose(found, as_list(*numbers, 6, 1, 1, is_stair), rtol=1e-6)


@pytest.mark.parametrize("is_updated", [False, True])
def test_other_schedules_and_lists_agree(is_updated: bool, either_mode: int) -> None:
    polynomial = nn.PolynomialDecayLR(0.5, 0.01, 3, 2.0, is_updated)
    lengths = [3 * max(-(-step // 3), 1) if is_updated else 3 for step in range(8)]
    expected = [0.49 * (1 - min(step, end) / end) ** 2 + 0.01 for step, end in enumerate(lengths)]
    np.testing.assert_allclose([float(polynomial(Tensor(step))) for step in range(8)], expected, rtol=1e-5)
    cosine, warm = nn.CosineDecayLR(0.01, 0.5, 3), nn.WarmUpLR(0.5, 3)
    expected = nn.cosine_decay_lr(0.01, 0.5, 5, 1, 3)
    np.testing.assert_allclose([float(cosine(Tensor(step))) for step in range(5)], expected, rtol=1e-5)
    expected = nn.warmup_lr(0.5, 5, 1, 3)
    np.testing.assert_allclose([float(warm(Tensor(step))) for step in range(5)], expected, rtol=1e-6)


def test_lists_of_rates() -> None:
    """Source: the examples of MindSpore's documentation of these functions."""
    assert nn.piecewise_constant_lr([2, 5, 10], [0.1, 0.05, 0.01]) == [0.1] * 2 + [0.05] * 3 + [0.01] * 5
    falling = [0.1, 0.1 / 1.5, 0.05, 0.04, 0.1 / 3, 0.1 / 3.5]
    assert nn.inverse_decay_lr(0.1, 0.5, 6, 1, 1, True) == pytest.approx(falling)
    assert nn.warmup_lr(0.1, 6, 2, 2) == pytest.approx([0.0, 0.0, 0.05, 0.05, 0.1, 0.1])


def test_an_optimizer_remembers_what_it_was_made_of() -> None:
    class Mine(nn.Optimizer):
        @opt_init_args_register
        def __init__(self, params: Any, learning_rate: float = 0.1, factor: float = 2.0) -> None:
            super().__init__(learning_rate, params)

        @nn.Optimizer.target.setter
        def target(self, value: str) -> None:
            self._set_base_target(value)

    weights = [Parameter(Tensor(np.ones(2, np.float32)), name="w")]
    mine = Mine(weights, 0.5)
    assert (mine.init_params, mine.init_learning_rate, mine.init_args) == ({"params": weights}, 0.5, {"factor": 2.0})
    mine.target = "CPU"
    assert mine.target == "CPU" and mine.unique
    with pytest.raises(ValueError, match="cannot be set to 'GPU' or 'Ascend' in the 'CPU' environment"):
        mine.target = "Ascend"


def test_asgd_keeps_the_mean_of_the_weights() -> None:
    weight = Parameter(Tensor(np.array([1.0, -2.0], np.float32)), "w")
    optimizer, seen = nn.ASGD([weight], 0.1, t0=1.0), []
    for _ in range(5):
        optimizer((Tensor(np.array([0.5, 1.0], np.float32)),))
        seen.append(weight.asnumpy())
    # Up to step t0 + 2 the last weight, then the mean of those since then.
    np.testing.assert_allclose(optimizer.ax[0].asnumpy(), np.mean(seen[2:], axis=0), rtol=1e-6)
