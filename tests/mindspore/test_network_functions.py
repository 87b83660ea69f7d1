"""Functions of neural networks of `mindspore.ops` against PyTorch and numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from msdump import mindspore as ms  # noqa: E402
from msdump.mindspore import ops  # noqa: E402

few = settings(max_examples=15, deadline=None)


def both(*shape: int, seed: int = 0) -> tuple[Any, Any]:
    array = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    return ms.Tensor(array), torch.from_numpy(array)


def assert_close(ours: Any, theirs: Any) -> None:
    np.testing.assert_allclose(ours.asnumpy(), theirs.numpy(), rtol=1e-4, atol=1e-5)


@given(
    ndim=st.integers(1, 3), stride=st.integers(1, 2), padding=st.integers(0, 2), dilation=st.integers(1, 2),
    groups=st.sampled_from([1, 2]), has_bias=st.booleans(),
)  # fmt: skip
@few
def test_convolutions(ndim: int, stride: int, padding: int, dilation: int, groups: int, has_bias: bool) -> None:
    x, tx = both(2, 2, *[6] * ndim)
    w, tw = both(4, 2 // groups, *[2] * ndim, seed=1)
    b, tb = both(4, seed=2) if has_bias else (None, None)
    ours = getattr(ops, f"conv{ndim}d")(x, w, b, stride, "pad", padding, dilation, groups)
    theirs = getattr(torch.nn.functional, f"conv{ndim}d")(tx, tw, tb, stride, padding, dilation, groups)
    assert_close(ours, theirs)


def test_padding_without_pad_mode_is_refused() -> None:
    x, w = both(1, 1, 4, 4)[0], both(1, 1, 2, 2)[0]
    with pytest.raises(ValueError, match="'pad_mode' is not 'pad'"):
        ops.conv2d(x, w, padding=1)


def test_gradient_of_a_convolution_as_an_operator() -> None:
    """Conv2DBackpropInput is what autodiff makes of Conv2D."""
    x, _ = both(1, 2, 5, 5)
    w, _ = both(3, 2, 3, 3, seed=1)
    dout, _ = both(1, 3, 3, 3, seed=2)
    expected = ms.grad(lambda x: (ops.conv2d(x, w) * dout).sum())(x)
    np.testing.assert_allclose(
        ops.Conv2DBackpropInput(3, 3)(dout, w, (1, 2, 5, 5)).asnumpy(), expected.asnumpy(), rtol=1e-5, atol=1e-6
    )


@given(
    mode=st.sampled_from(["nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "area"]),
    size=st.integers(1, 7), aligned=st.booleans(), ndim=st.integers(1, 3),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_interpolate(mode: str, size: int, aligned: bool, ndim: int) -> None:
    fixed = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}
    ndim = fixed.get(mode, min(ndim, 2) if mode == "nearest-exact" else ndim)
    x, tx = both(1, 2, *[4] * ndim)
    align = (aligned or mode == "bicubic") if mode in fixed else None
    sizes = tuple(size + axis for axis in range(ndim))
    ours = ops.interpolate(x, sizes, mode=mode, align_corners=align)
    assert_close(ours, torch.nn.functional.interpolate(tx, sizes, mode=mode, align_corners=align))


def test_interpolate_by_factor_and_what_it_refuses() -> None:
    x, tx = both(1, 1, 3, 4)
    assert_close(ops.upsample(x, scale_factor=2.0), torch.nn.functional.interpolate(tx, scale_factor=2.0))
    for wrong in ({}, {"size": (2, 2), "scale_factor": 2.0}, {"size": (2, 2), "mode": "linear"}):
        with pytest.raises(ValueError, match="interpolate"):
            ops.interpolate(x, **wrong)


@given(mode=st.sampled_from(["bilinear", "nearest", "bicubic"]), aligned=st.booleans(),
       padding=st.sampled_from(["zeros", "border", "reflection"]))  # fmt: skip
@few
def test_grid_sample_of_an_affine_grid(mode: str, aligned: bool, padding: str) -> None:
    x, tx = both(1, 2, 4, 5)
    theta, ttheta = both(1, 2, 3, seed=1)
    grid = ops.affine_grid(theta, (1, 2, 3, 3), aligned)
    tgrid = torch.nn.functional.affine_grid(ttheta, [1, 2, 3, 3], aligned)
    assert_close(grid, tgrid)
    theirs = torch.nn.functional.grid_sample(tx, tgrid, mode, padding, aligned)
    assert_close(ops.grid_sample(x, ms.Tensor(tgrid.numpy()), mode, padding, aligned), theirs)


@pytest.mark.parametrize("is_training", [False, True])
def test_batch_norm(is_training: bool) -> None:
    (x, tx), (w, tw), (b, tb) = both(3, 2, 4, 4), both(2, seed=1), both(2, seed=2)
    mean, variance = (ms.Parameter(ms.Tensor(np.full(2, v, np.float32)), name=str(v)) for v in (0.5, 2.0))
    tmean, tvariance = torch.full((2,), 0.5), torch.full((2,), 2.0)
    ours = ops.batch_norm(x, mean, variance, w, b, is_training)
    assert_close(ours, torch.nn.functional.batch_norm(tx, tmean, tvariance, tw, tb, is_training))


def test_max_pool2d_and_its_places() -> None:
    x, tx = both(1, 2, 5, 5)
    value, places = ops.max_pool2d(x, 3, 2, 1, return_indices=True)
    theirs, their_places = torch.nn.functional.max_pool2d(tx, 3, 2, 1, return_indices=True)
    assert_close(value, theirs)
    assert np.array_equal(places.asnumpy(), their_places.numpy())


def test_poolings_of_one_axis() -> None:
    x, tx = both(2, 3, 7)
    assert_close(ops.adaptive_avg_pool1d(x, 3), torch.nn.functional.adaptive_avg_pool1d(tx, 3))
    assert_close(ops.adaptive_max_pool1d(x, 3), torch.nn.functional.adaptive_max_pool1d(tx, 3))


def test_norms_are_bounded_together() -> None:
    tensors = [both(3, seed=seed)[0] * 4 for seed in range(3)]
    clipped = ops.clip_by_global_norm(tensors, 1.5)
    norm = np.sqrt(sum(float((each.asnumpy() ** 2).sum()) for each in clipped))
    np.testing.assert_allclose(norm, 1.5, rtol=1e-5)
    for each, same in zip(ops.clip_by_global_norm(tensors, 1e3), tensors, strict=True):
        np.testing.assert_allclose(each.asnumpy(), same.asnumpy(), rtol=1e-6)


def test_likeness_of_vectors() -> None:
    (a, ta), (b, tb) = both(3, 4), both(3, 4, seed=1)
    assert_close(ops.cosine_similarity(a, b), torch.nn.functional.cosine_similarity(ta, tb))
    p = ms.Tensor(np.array([0.2, 0.9], np.float32))
    assert_close(ops.logit(p), torch.logit(torch.tensor([0.2, 0.9])))
    assert_close(ops.dense(a, b), ta @ tb.T)


@given(size=st.integers(0, 12), periodic=st.booleans())
@few
def test_windows(size: int, periodic: bool) -> None:
    for name in ("bartlett", "hann", "blackman", "hamming", "kaiser"):
        expected = getattr(torch, f"{name}_window")(size, periodic)
        assert_close(getattr(ops, f"{name}_window")(size, periodic), expected)
    assert_close(ops.HammingWindow(periodic)(ms.Tensor(size)), torch.hamming_window(size, periodic))


def test_boxes_that_overlap_a_better_one_are_not_kept() -> None:
    boxes = ms.Tensor(np.array([(0, 0, 4, 4, 0.5), (1, 1, 5, 5, 0.9), (6, 6, 9, 8, 0.2)], np.float32))
    ordered, rows, mask = ops.NMSWithMask(0.3)(boxes)
    assert rows.asnumpy().tolist() == [0, 1, 2] and mask.asnumpy().tolist() == [True, False, True]
    assert ordered.asnumpy()[0].tolist() == boxes.asnumpy()[1].tolist()
