"""Every optimizer, with its options, against PyTorch's or the published formula over five steps, in both modes."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from msdump.mindspore import Parameter, Tensor, mint, nn
from msdump.mindspore.experimental import optim
from msdump.tensors.arrays import Array
from tests.mindspore.nn.optimizer_rows import EXPERIMENTAL, REFUSED, ROWS, STEPS, Row

pytest.importorskip("torch")
_RNG = np.random.default_rng(29)
# By default weights of a normalisation ("gamma") do not decay. 16 columns, as gradients are centralized only then.
STARTS = {"w": _RNG.standard_normal((3, 16)), "gamma": _RNG.standard_normal(4)}
GRADIENTS = [{name: _RNG.standard_normal(start.shape) for name, start in STARTS.items()} for _ in range(STEPS)]


def trained(row: Row, module: Any, parameter: Any, tensor: Any) -> dict[str, Array]:
    """The weights after the steps, by the optimizer of `module`."""
    parameters = [parameter(tensor(start.astype(np.float32)), name=name) for name, start in STARTS.items()]
    optimizer = row.make(module, parameters)
    for gradients in GRADIENTS:
        optimizer(tuple(tensor((gradients[each.name] * row.scale).astype(np.float32)) for each in parameters))
    return {each.name: each.asnumpy() for each in parameters}


def expected(row: Row) -> dict[str, Array]:
    """The weights after the steps, by the rule."""
    results = {}
    for name, start in STARTS.items():
        rule, state = row.rule(), {}
        decay = row.decay if row.decays_all or name != "gamma" else 0.0
        weight = start.astype(np.float32).astype(np.float64)
        for step, gradients in enumerate(GRADIENTS, 1):
            gradient = gradients[name].astype(np.float32).astype(np.float64)
            if row.is_centralized and gradient.ndim > 1:
                gradient = gradient - gradient.mean(1, keepdims=True)
            rate = row.rates[step - 1] if isinstance(row.rates, list) else row.rates
            weight = rule(weight, gradient, state, step, rate, decay)
        results[name] = weight
    return results


@pytest.mark.parametrize("name", ROWS)
def test_weights_follow_the_rule(name: str, either_mode: int) -> None:
    row = ROWS[name]
    weights = trained(row, nn, Parameter, Tensor)
    for of, weight in expected(row).items():
        np.testing.assert_allclose(weights[of], weight, rtol=1e-5, atol=1e-6, err_msg=of)


@pytest.mark.parametrize("name", EXPERIMENTAL)
def test_weights_of_experimental_optimizers_follow_the_rule(name: str, either_mode: int) -> None:
    row = EXPERIMENTAL[name]
    weights = trained(row, optim, Parameter, Tensor)
    for of, weight in expected(row).items():
        np.testing.assert_allclose(weights[of], weight, rtol=1e-5, atol=1e-6, err_msg=of)


def _optimizers(*modules: Any) -> set[str]:
    bases = (nn.Optimizer, optim.Optimizer)
    things = {name: thing for module in modules for name, thing in vars(module).items() if inspect.isclass(thing)}
    return {name for name, thing in things.items() if issubclass(thing, bases) and thing not in bases}


def test_every_optimizer_has_a_rule() -> None:
    # tests/mindspore/test_public_names.py compares these with MindSpore.
    elsewhere = {"AdaMax", "LARS"}
    assert _optimizers(nn, nn.optim, mint) - elsewhere == {name.split()[0] for name in ROWS}
    public = {name for name in _optimizers(optim) if not name.startswith("_")}
    elsewhere = {"ASGD", "Adadelta", "Adagrad", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop"}
    assert public - elsewhere == {name.split()[0] for name in EXPERIMENTAL}
    for name, reason in REFUSED.items():
        with pytest.raises(NotImplementedError, match=reason.split()[-1]):
            getattr(nn, name)()
