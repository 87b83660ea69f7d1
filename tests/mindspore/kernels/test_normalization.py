from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import GraphError
from msdump.graph.primitive import definition_of
from msdump.graph.types import TensorType
from msdump.mindspore.kernels import normalization, threads
from msdump.tensors.arrays import Array
from tests.mindspore.kernels.interpreter import run_op

quick = settings(max_examples=25, deadline=None)


def sample(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32) * 3 + 1


@st.composite
def batches(draw: st.DrawFn) -> tuple[Array, str, int]:
    """x, format and the channel axis."""
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=2, max_size=4)))
    format = draw(st.sampled_from(["NCHW", "NHWC"]))
    return sample(draw(st.integers(0, 99)), *shape), format, 1 if format == "NCHW" else len(shape) - 1


@given(batch=batches(), momentum=st.sampled_from([0.1, 0.5, 1.0]))
@quick
def test_batch_norm_in_training(batch: tuple[Array, str, int], momentum: float) -> None:
    x, format, axis = batch
    axes = tuple(a for a in range(x.ndim) if a != axis)
    channels = x.shape[axis]
    scale, offset, running_mean, running_variance = (sample(seed, channels) for seed in range(4))
    mean, variance = x.astype(np.float64).mean(axes), x.astype(np.float64).var(axes)
    new_mean = running_mean * (1 - momentum) + mean * momentum
    new_variance = running_variance * (1 - momentum) + variance * momentum
    kept = [1 if a != axis else channels for a in range(x.ndim)]
    normal = (x - mean.reshape(kept)) / np.sqrt(variance + 1e-3).reshape(kept)
    attrs = {"is_training": True, "epsilon": 1e-3, "momentum": momentum, "format": format}
    y, *saved = run_op("BatchNorm", [x, scale, offset, running_mean, running_variance], attrs)
    np.testing.assert_allclose(y, normal * scale.reshape(kept) + offset.reshape(kept), rtol=1e-4, atol=1e-4)
    for found, expected in zip(saved, (mean, variance, mean, variance), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(running_mean, new_mean, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(running_variance, new_variance, rtol=1e-5, atol=1e-5)


def test_batch_norm_in_use_leaves_the_statistics() -> None:
    x = sample(0, 3, 2, 2)
    small = [np.array(values, np.float32) for values in ([1, 2], [0, 1], [0.5, -0.5], [4, 1])]
    before = [array.copy() for array in small]
    y, mean, variance, _, _ = run_op("BatchNorm", [x, *small], {"epsilon": 1e-12})
    expected = (x - before[2][:, None]) / np.sqrt(before[3])[:, None] * before[0][:, None] + before[1][:, None]
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
    assert all(np.array_equal(a, b) for a, b in zip(small, before, strict=True))
    assert np.array_equal(mean, before[2]) and np.array_equal(variance, before[3])


def test_many_blocks_give_exact_statistics() -> None:
    """A mean far from 0 in a big batch costs no digits of the variance."""
    x = (np.random.default_rng(5).standard_normal((40, 3, 70, 70)) + 1000).astype(np.float32)
    small = [np.ones(3, np.float32) for _ in range(4)]
    outputs = run_op("BatchNorm", [x, *small], {"is_training": True})
    wide = x.astype(np.float64)
    np.testing.assert_allclose(outputs[1], wide.mean((0, 2, 3)), rtol=1e-6)
    np.testing.assert_allclose(outputs[2], wide.var((0, 2, 3)), rtol=1e-4)
    again = run_op("BatchNorm", [x, *[np.ones(3, np.float32) for _ in range(4)]], {"is_training": True})
    assert all(a.tobytes() == b.tobytes() for a, b in zip(outputs, again, strict=True))


@given(seed=st.integers(0, 99), begin=st.integers(-3, 2))
@quick
def test_layer_norm(seed: int, begin: int) -> None:
    x = sample(seed, 2, 3, 4)
    gamma, beta = sample(1, 4), sample(2, 4)
    axes = tuple(range(begin % 3, 3))
    attrs = {"begin_norm_axis": begin, "begin_params_axis": -1, "epsilon": 1e-3}
    y, mean, variance = run_op("LayerNorm", [x, gamma, beta], attrs)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(mean, wide.mean(axes, keepdims=True), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(variance, wide.var(axes, keepdims=True), rtol=1e-4, atol=1e-5)
    normal = (wide - wide.mean(axes, keepdims=True)) / np.sqrt(wide.var(axes, keepdims=True) + 1e-3)
    np.testing.assert_allclose(y, normal * gamma + beta, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("begin_norm", "begin_params"), [(1, 2), (2, 1), (1, 1), (2, 2), (0, 2), (2, 0)])
@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_layer_norm_in_many_blocks(
    monkeypatch: pytest.MonkeyPatch, begin_norm: int, begin_params: int, dtype: type
) -> None:
    """As in one block, but for the order in which the sums of blocks add up."""
    x, dy = (sample(seed, 5, 6, 7).astype(dtype) for seed in range(2))
    gamma, beta = (sample(seed, *x.shape[begin_params:]).astype(dtype) for seed in range(2, 4))
    attrs = {"begin_norm_axis": begin_norm, "begin_params_axis": begin_params}

    def results() -> list[Array]:
        y, mean, variance = run_op("LayerNorm", [x, gamma, beta], attrs)
        return [y, mean, variance, *run_op("LayerNormGrad", [x, dy, variance, mean, gamma], attrs)]

    whole, tolerance = results(), 2e-3 if dtype == np.float16 else 1e-12
    monkeypatch.setattr(normalization, "CHAIN_BLOCK", 1)
    monkeypatch.setattr(threads, "SERIAL_SIZE", 1)
    for found, expected in zip(results(), whole, strict=True):
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("shape", [(2, 0), (0, 3)])
def test_layer_norm_of_nothing(shape: tuple[int, int]) -> None:
    x, gamma = np.zeros(shape, np.float32), np.ones(shape[1:], np.float32)
    y, mean, variance = run_op("LayerNorm", [x, gamma, gamma])
    assert y.shape == shape and np.isnan(mean).all() and np.isnan(variance).all()
    dx, dgamma, dbeta = run_op("LayerNormGrad", [x, x, variance, mean, gamma])
    assert dx.shape == shape and not dgamma.any() and not dbeta.any()


def test_operands_that_do_not_fit() -> None:
    x, row = TensorType("float32", (4, 3, 2, 2)), TensorType("float32", (3,))
    batch, layer = definition_of("BatchNorm").infer, definition_of("LayerNorm").infer
    assert batch is not None and layer is not None
    with pytest.raises(GraphError, match=r"value per channel of shape \(3,\), got \(2,\)"):
        batch([x, row, row, row, TensorType("float32", (2,))], {})
    with pytest.raises(GraphError, match='format "NCHW" or "NHWC", got \'NC\''):
        batch([x, row, row, row, row], {"format": "NC"})
    with pytest.raises(GraphError, match="x with at least 2 axes"):
        batch([row, row, row, row, row], {})
    with pytest.raises(GraphError, match=r"gamma of shape \(3, 2, 2\), got \(3,\)"):
        layer([x, row, row], {})
    with pytest.raises(GraphError, match="begin_norm_axis in"):
        layer([x, row, row], {"begin_norm_axis": 4})
