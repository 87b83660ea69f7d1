"""Initializers against their distributions, and those that scripts write."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.mindspore import nn
from msdump.mindspore.common.initializer import (
    Identity,
    Initializer,
    Orthogonal,
    TruncatedNormal,
    VarianceScaling,
    initializer,
)
from msdump.tensors.arrays import Array


def values(init: Any, shape: list[int]) -> Array:
    return initializer(init, shape).asnumpy()


class Filled(Initializer):
    def __init__(self, value: float) -> None:
        super().__init__(value=value)
        self.value = value

    def _initialize(self, arr: Array) -> None:
        arr[:] = self.value


def test_a_script_s_own_initializer_fills_the_array() -> None:
    assert values(Filled(7), [2, 2]).tolist() == [[7, 7], [7, 7]]
    assert nn.Dense(2, 2, weight_init=Filled(3)).weight.asnumpy().tolist() == [[3, 3], [3, 3]]
    with pytest.raises(NotImplementedError, match="_initialize"):
        values(Initializer(), [2])


@pytest.mark.parametrize(("sigma", "deviation", "largest"), [(1.0, 0.88, 2.0), (0.02, 0.02, 0.2)])
def test_bounds_of_a_truncated_normal_are_values(sigma: float, deviation: float, largest: float) -> None:
    """Source: MindSpore 2.0 and 2.7; so with a small sigma nothing is cut off."""
    drawn = values(TruncatedNormal(sigma), [200, 500])
    np.testing.assert_allclose(drawn.std(), deviation, rtol=0.02)
    assert 0.4 * largest < np.abs(drawn).max() <= largest


def test_a_truncated_normal_far_from_its_mean_is_refused() -> None:
    with pytest.raises(ValueError, match="expected bounds near the mean"):
        values(TruncatedNormal(0.01, 0.0, 5.0, 6.0), [3])


@pytest.mark.parametrize(("mode", "fan"), [("fan_in", 400), ("fan_out", 200), ("fan_avg", 300)])
@pytest.mark.parametrize("distribution", ["uniform", "truncated_normal", "untruncated_normal"])
def test_variance_scaling(mode: str, fan: int, distribution: str) -> None:
    drawn = values(VarianceScaling(2.0, mode, distribution), [200, 400])
    np.testing.assert_allclose(drawn.var(), 2.0 / fan, rtol=0.05)
    bound = np.sqrt(6.0 / fan) * (1 + 1e-6)
    assert (np.abs(drawn).max() <= bound) == (distribution != "untruncated_normal")


@pytest.mark.parametrize("wrong", [{"scale": 0}, {"mode": "x"}, {"distribution": "x"}])
def test_variance_scaling_checks_its_arguments(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="For VarianceScaling initializer, the argument"):
        VarianceScaling(**wrong)


def test_identity() -> None:
    np.testing.assert_array_equal(values(Identity(), [3, 4]), np.eye(3, 4))


@pytest.mark.parametrize("shape", [[4, 3], [3, 4], [3, 2, 2]])
def test_orthogonal(shape: list[int]) -> None:
    drawn = values(Orthogonal(2.0), shape).reshape(shape[0], -1).astype(np.float64)
    product = drawn @ drawn.T if shape[0] <= drawn.shape[1] else drawn.T @ drawn
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-5)


WRONG: list[tuple[Any, list[int], str]] = [
    ("identity", [3, 3, 2], "should be 2, but got 3"),
    ("orthogonal", [3], "no less than 2, but got 1"),
]


@pytest.mark.parametrize(("init", "shape", "text"), WRONG)
def test_shapes_that_do_not_fit_are_refused(init: Any, shape: list[int], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        values(init, shape)


def test_fans_and_gains_are_there_under_the_names_that_scripts_import() -> None:
    from msdump.mindspore.common import initializer as module

    assert module._calculate_fan_in_and_fan_out((4, 3, 2, 2)) == (12, 16)
    assert module._calculate_correct_fan((4, 3, 2, 2), "fan_out") == 16
    np.testing.assert_allclose(module._calculate_gain("leaky_relu", 5**0.5), 3**-0.5)
    assert module._calculate_gain("tanh") == 5 / 3
    with pytest.raises(ValueError, match="'fan_in' or 'fan_out', but got x"):
        module._calculate_correct_fan((2, 2), "x")
    with pytest.raises(ValueError, match="2 or more axes"):
        module._calculate_fan_in_and_fan_out((4,))


def test_data_of_parameters_are_there_from_the_beginning() -> None:
    layer = nn.Dense(2, 3)
    assert layer.init_parameters_data() == {layer.weight: layer.weight, layer.bias: layer.bias}


def test_the_module_says_what_it_is() -> None:
    from msdump import __version__

    assert ms.__msdump__ == __version__
    assert tuple(int(part) for part in ms.__version__.split(".")) >= (2, 0, 0)
