"""Convolutions and poolings of one to three dimensions against PyTorch, forward and backward, in both modes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.mindspore import Tensor, nn
from tests.mindspore.nn.against_torch import check, numbers

torch = pytest.importorskip("torch")
F = torch.nn.functional

LINE, IMAGE, VOLUME = numbers(2, 4, 8), numbers(2, 4, 6, 7), numbers(2, 4, 4, 5, 4)


def _conv1d(x: Any, weight: Any, bias: Any) -> Any:
    return F.conv1d(x, weight.squeeze(2), bias, 2, 1, groups=2)


def _conv1d_transpose(x: Any, weight: Any, bias: Any) -> Any:
    return F.conv_transpose1d(x, weight.squeeze(2), bias, 2, 1)


INIT = {"has_bias": True, "weight_init": "he_normal", "bias_init": "normal"}
CASES: dict[str, tuple[Any, Any, Any]] = {
    "conv1d": (lambda: nn.Conv1d(4, 6, 3, 2, "pad", 1, group=2, **INIT), _conv1d, LINE),
    "conv1d_transpose": (lambda: nn.Conv1dTranspose(4, 3, 4, 2, "pad", 1, **INIT), _conv1d_transpose, LINE),
    "conv3d": (
        lambda: nn.Conv3d(4, 6, (3, 2, 3), 2, "pad", (1, 1, 0, 0, 1, 1), group=2, **INIT),
        lambda x, weight, bias: F.conv3d(x, weight, bias, 2, (1, 0, 1), groups=2),
        VOLUME,
    ),
    "conv3d_same": (
        lambda: nn.Conv3d(4, 2, 3, **INIT),
        lambda x, weight, bias: F.conv3d(x, weight, bias, padding="same"),
        VOLUME,
    ),
    "conv3d_transpose": (
        lambda: nn.Conv3dTranspose(4, 3, 3, 2, "pad", 1, output_padding=1, **INIT),
        lambda x, weight, bias: F.conv_transpose3d(x, weight, bias, 2, 1, 1),
        VOLUME,
    ),
    "conv3d_transpose_valid": (
        lambda: nn.Conv3dTranspose(4, 3, 3, 2, "valid", **INIT),
        lambda x, weight, bias: F.conv_transpose3d(x, weight, bias, 2),
        VOLUME,
    ),
    # Source: pad_mode "same" cuts the last element where the pads of the convolution are uneven.
    "conv3d_transpose_same": (
        lambda: nn.Conv3dTranspose(4, 3, 3, 2, "same", **INIT),
        lambda x, weight, bias: F.conv_transpose3d(x, weight, bias, 2)[..., :-1, :-1, :-1],
        VOLUME,
    ),
    "max_pool1d": (lambda: nn.MaxPool1d(3, 2), lambda x: F.max_pool1d(x, 3, 2), LINE),
    "max_pool1d_pad": (
        lambda: nn.MaxPool1d(3, 2, "pad", 1, dilation=2, ceil_mode=True),
        lambda x: F.max_pool1d(x, 3, 2, 1, 2, True),
        LINE,
    ),
    "max_pool2d_ceil": (
        lambda: nn.MaxPool2d(3, 2, "pad", 1, dilation=(1, 2), ceil_mode=True),
        lambda x: F.max_pool2d(x, 3, 2, 1, (1, 2), True),
        IMAGE,
    ),
    "max_pool2d_of_one": (lambda: nn.MaxPool2d(2, 2), lambda x: F.max_pool2d(x, 2, 2), IMAGE[0]),
    "avg_pool2d_ceil": (
        lambda: nn.AvgPool2d(3, 2, "pad", 1, ceil_mode=True, count_include_pad=False),
        lambda x: F.avg_pool2d(x, 3, 2, 1, True, False),
        IMAGE,
    ),
    "avg_pool2d_divisor": (
        lambda: nn.AvgPool2d(2, 2, divisor_override=3),
        lambda x: F.avg_pool2d(x, 2, 2, divisor_override=3),
        IMAGE,
    ),
    "max_pool3d": (lambda: nn.MaxPool3d(2, 2), lambda x: F.max_pool3d(x, 2, 2), VOLUME),
    "max_pool3d_pad": (lambda: nn.MaxPool3d(3, 2, "pad", 1), lambda x: F.max_pool3d(x, 3, 2, 1), VOLUME),
    "avg_pool1d": (lambda: nn.AvgPool1d(3, 2), lambda x: F.avg_pool1d(x, 3, 2), LINE),
    "avg_pool1d_pad": (
        lambda: nn.AvgPool1d(3, 2, "pad", 1, True, False),
        lambda x: F.avg_pool1d(x, 3, 2, 1, True, False),
        LINE,
    ),
    "avg_pool3d": (lambda: nn.AvgPool3d(2, 2), lambda x: F.avg_pool3d(x, 2, 2), VOLUME),
    "avg_pool3d_pad": (
        lambda: nn.AvgPool3d(3, 2, "pad", (1, 0, 1), divisor_override=7),
        lambda x: F.avg_pool3d(x, 3, 2, (1, 0, 1), divisor_override=7),
        VOLUME,
    ),
    "adaptive_avg1d": (lambda: nn.AdaptiveAvgPool1d(4), lambda x: F.adaptive_avg_pool1d(x, 4), LINE),
    "adaptive_avg2d": (lambda: nn.AdaptiveAvgPool2d((4, None)), lambda x: F.adaptive_avg_pool2d(x, (4, None)), IMAGE),
    "adaptive_avg3d": (
        lambda: nn.AdaptiveAvgPool3d((3, 2, None)),
        lambda x: F.adaptive_avg_pool3d(x, (3, 2, 4)),
        VOLUME,
    ),
    "adaptive_max1d": (lambda: nn.AdaptiveMaxPool1d(2), lambda x: F.adaptive_max_pool1d(x, 2), LINE),
    "adaptive_max2d": (lambda: nn.AdaptiveMaxPool2d(4), lambda x: F.adaptive_max_pool2d(x, 4), IMAGE),
    "adaptive_max3d": (lambda: nn.AdaptiveMaxPool3d(2), lambda x: F.adaptive_max_pool3d(x, 2), VOLUME),
    # Source: MindSpore multiplies alpha by the sum, PyTorch by the mean.
}


@pytest.mark.parametrize("name", CASES)
def test_windows_equal_torch(name: str, either_mode: int) -> None:
    make, reference, data = CASES[name]
    check(make(), reference, [data], rtol=2e-5, atol=1e-5)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6), st.integers(1, 6))
def test_adaptive_means_of_any_size(height: int, width: int, rows: int, columns: int) -> None:
    data = numbers(1, 2, height, width)
    check(
        nn.AdaptiveAvgPool2d((rows, columns)),
        lambda x: F.adaptive_avg_pool2d(x, (rows, columns)),
        [data],
        has_gradient=rows <= height,
    )


def test_data_without_a_batch() -> None:
    np.testing.assert_array_equal(
        nn.MaxPool1d(2, 2)(Tensor(LINE[0])).asnumpy(), nn.MaxPool1d(2, 2)(Tensor(LINE)).asnumpy()[0]
    )


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: nn.Conv1d(4, 6, (3,)), TypeError),
        (lambda: nn.Conv1d(4, 6, 0), ValueError),
        (lambda: nn.Conv3d(4, 6, 3, group=4), ValueError),
        (lambda: nn.Conv3dTranspose(4, 6, 3, output_padding=1), ValueError),
        (lambda: nn.MaxPool1d(2, padding=1), ValueError),
        (lambda: nn.AvgPool3d(0), ValueError),
        (lambda: nn.AvgPool1d(2, pad_mode="wide"), ValueError),
        (lambda: nn.AdaptiveAvgPool1d(3)(Tensor(LINE)), ValueError),
    ],
)
def test_bad_arguments(make: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        make()
