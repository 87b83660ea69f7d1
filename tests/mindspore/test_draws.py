"""Random functions of `mindspore.ops`: what repeats, what does not, and the distributions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from msdump import mindspore as ms
from msdump.errors import GraphError
from msdump.mindspore import ops

COUNT = 20_000
SHAPE = (COUNT,)
TEN = 4.5, 99**0.5 / 12**0.5  # mean and deviation of 0 to 9
ORDER = (COUNT - 1) / 2, COUNT / 12**0.5


def weights() -> Any:
    return ms.Tensor(np.array([0.1, 0.2, 0.3, 0.4], np.float32))


def ones() -> Any:
    return ms.Tensor(np.ones(COUNT, np.float32))


# Function -> (what it draws, mean, standard deviation; None: has none).
DRAWS: dict[str, tuple[Callable[[], Any], float | None, float]] = {
    "standard_normal": (lambda: ops.standard_normal(SHAPE), 0, 1),
    "StandardNormal": (lambda: ops.StandardNormal()(SHAPE), 0, 1),
    "normal": (lambda: ops.normal(SHAPE, ms.Tensor(2.0), ms.Tensor(3.0)), 2, 3),
    "uniform": (lambda: ops.uniform(SHAPE, ms.Tensor(1.0), ms.Tensor(3.0)), 2, 2 / 12**0.5),
    "UniformReal": (lambda: ops.UniformReal()(SHAPE), 0.5, 1 / 12**0.5),
    "UniformInt": (lambda: ops.UniformInt()(SHAPE, ms.Tensor(0, ms.int32), ms.Tensor(10, ms.int32)), *TEN),
    "rand": (lambda: ops.rand(*SHAPE), 0.5, 1 / 12**0.5),
    "randn_like": (lambda: ops.randn_like(ones()), 0, 1),
    "randint": (lambda: ops.randint(0, 10, SHAPE), *TEN),
    "randperm": (lambda: ops.randperm(COUNT), *ORDER),
    "random_poisson": (lambda: ops.random_poisson(SHAPE, ms.Tensor(9.0)), 9, 3),
    "shuffle": (lambda: ops.shuffle(ms.Tensor(np.arange(COUNT))), *ORDER),
    "bernoulli": (lambda: ops.bernoulli(ones(), 0.2), 0.2, 0.4),
    "multinomial": (lambda: ops.multinomial(weights(), COUNT), 2, 1),
    "random_categorical": (lambda: ops.random_categorical(ops.log(weights()).reshape((1, 4)), COUNT), 2, 1),
    "TruncatedNormal": (lambda: ops.TruncatedNormal()(SHAPE), 0, 0.8796),
    "choice_with_mask": (lambda: ops.choice_with_mask(ones().astype(ms.bool_), COUNT)[0], *ORDER),
    "rrelu": (lambda: ops.rrelu(-ones()), -(1 / 8 + 1 / 3) / 2, (1 / 3 - 1 / 8) / 12**0.5),
}  # fmt: skip


@pytest.fixture(autouse=True)
def default_mode() -> Iterator[None]:
    mode = ms.get_context("mode")
    yield
    ms.set_context(mode=mode)


@pytest.mark.parametrize("name", DRAWS)
def test_seed_repeats_the_numbers_and_calls_do_not(name: str) -> None:
    draw = DRAWS[name][0]
    ms.set_seed(5)
    first, second = draw().asnumpy(), draw().asnumpy()
    ms.set_seed(5)
    assert np.array_equal(draw().asnumpy(), first)
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("name", DRAWS)
def test_every_run_of_a_graph_draws_anew(name: str) -> None:
    """The mean lies within six standard errors, in both of two runs."""
    draw, mean, spread = DRAWS[name]
    ms.set_seed(7)
    compiled = ms.jit(draw)
    first, second = compiled().asnumpy(), compiled().asnumpy()
    assert first.shape == second.shape and first.dtype == second.dtype
    assert not np.array_equal(first, second)
    if mean is not None:
        assert abs(float(first.mean(dtype=np.float64)) - mean) <= 6 * spread / COUNT**0.5
        assert abs(float(second.mean(dtype=np.float64)) - mean) <= 6 * spread / COUNT**0.5


def test_a_seed_of_ones_own_chooses_the_numbers() -> None:
    one, same, other = (ops.standard_normal((50,), seed).asnumpy() for seed in (3, 3, 4))
    assert np.array_equal(one, same) and not np.array_equal(one, other)


def test_draws_without_replacement_are_distinct() -> None:
    for _ in range(5):
        assert sorted(ops.multinomial(weights(), 4, replacement=False).asnumpy().tolist()) == [0, 1, 2, 3]
    with pytest.raises(GraphError, match="at most 4 draws without replacement"):
        ops.multinomial(weights(), 5, replacement=False)


def test_gradient_flows_through_the_parameters_of_a_distribution() -> None:
    mean, deviation = ms.grad(lambda m, s: ops.normal((3,), m, s, 11).sum(), (0, 1))(ms.Tensor(1.0), ms.Tensor(2.0))
    assert float(mean) == 3.0
    np.testing.assert_allclose(float(deviation), ops.standard_normal((3,), 11).asnumpy().sum(), rtol=1e-5)


def test_wrong_seeds_and_probabilities_are_refused() -> None:
    with pytest.raises(TypeError, match="the type of 'seed' should be int"):
        ops.standard_normal((2,), 1.5)
    with pytest.raises(ValueError, match="in range"):
        ops.bernoulli(ones(), 1.5)


@pytest.mark.parametrize(("operator", "shape"), [(ops.Dropout2D, (8, 8, 2, 2)), (ops.Dropout3D, (8, 8, 1, 2, 2))])
def test_channel_dropout_gives_its_mask(operator: Any, shape: tuple[int, ...]) -> None:
    output, mask = operator(0.5)(ms.Tensor(np.ones(shape, np.float32)))
    assert mask.dtype == ms.bool_ and mask.shape == shape
    np.testing.assert_array_equal(output.asnumpy(), mask.asnumpy() * np.float32(2))
    assert all(channel.min() == channel.max() for channel in mask.asnumpy().reshape(64, -1))
    with pytest.raises(ValueError, match="'keep_prob' must be in range"):
        operator(1.5)(ms.Tensor(np.ones(shape, np.float32)))


def test_parts_are_shuffled_whole_and_counts_follow_their_means() -> None:
    rows = np.arange(40).reshape(20, 2)
    mixed = ops.shuffle(ms.Tensor(rows), seed=3).asnumpy()
    np.testing.assert_array_equal(mixed[np.argsort(mixed[:, 0])], rows)
    means = np.array([[0.0, 2.0, 50.0]], np.float32)
    counts = ops.random_poisson(ms.Tensor([COUNT]), ms.Tensor(means), dtype=ms.int32)
    assert counts.shape == (COUNT, 1, 3) and counts.dtype == ms.int32
    np.testing.assert_allclose(counts.asnumpy().mean(axis=0), means, rtol=0.03)
    np.testing.assert_allclose(counts.asnumpy().var(axis=0), means, rtol=0.05)
    assert ops.random_poisson(ms.Tensor([]), ms.Tensor(means)).shape == means.shape
    with pytest.raises(GraphError, match="rate of at least 0"):
        ops.random_poisson((2,), ms.Tensor(-1.0))
