"""Convolutions and poolings of `mindspore.mint.nn.functional`."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.dtype import int64
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.ops import function as F
from msdump.mindspore.ops.windows import sizes


def _same(input: Tensor, weight: Tensor, dilation: Any, ndim: int) -> tuple[Tensor, int]:
    """Input that is padded so that a convolution of stride 1 keeps its size: more at the end, where it is uneven."""
    pads: list[int] = []
    for step, kernel in zip(sizes(dilation, ndim), weight.shape[2:], strict=True):
        total = step * (kernel - 1)
        pads = [total // 2, total - total // 2, *pads]
    return (F.pad(input, tuple(pads)) if any(pads) else input), 0


def _conv(ndim: int, input: Tensor, weight: Tensor, bias: Any, stride: Any, padding: Any, *more: Any) -> Tensor:
    is_single = input.ndim == ndim + 1
    if is_single:
        input = F.expand_dims(input, 0)
    if padding == "same":
        if any(each != 1 for each in sizes(stride, ndim)):
            raise ValueError(f"For 'conv{ndim}d', padding='same' needs stride 1, but got {stride}.")
        input, padding = _same(input, weight, more[0], ndim)
    if padding == "valid":
        padding = 0
    function = (F.conv1d, F.conv2d, F.conv3d)[ndim - 1]
    pads = sizes(padding, ndim)
    if ndim == 1:
        output = function(input, weight, bias, stride, "pad", pads[0], *more)
    else:
        output = function(input, weight, bias, stride, "pad", tuple(pad for pad in pads for _ in range(2)), *more)
    return F.squeeze(output, 0) if is_single else output


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution of (N, C, L) with (O, C / groups, k); padding: rows, "valid" or "same"."""
    return _conv(1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution of (N, C, H, W) with (O, C / groups, kh, kw); padding: rows, "valid" or "same"."""
    return _conv(2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution of (N, C, D, H, W) with (O, C / groups, kd, kh, kw); padding: rows, "valid" or "same"."""
    return _conv(3, input, weight, bias, stride, padding, dilation, groups)


def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Means of windows along the last axis."""
    window, step, pad = (sizes(each, 1)[0] for each in (kernel_size, stride or kernel_size, padding))
    return F.avg_pool1d(input, window, step, pad, ceil_mode, count_include_pad)


def avg_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Means of windows of the last two axes."""
    step = kernel_size if stride is None else stride
    return F.avg_pool2d(input, kernel_size, step, padding, ceil_mode, count_include_pad, divisor_override or 0)


def avg_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Means of windows of the last three axes."""
    step = kernel_size if stride is None else stride
    return F.avg_pool3d(input, kernel_size, step, padding, ceil_mode, count_include_pad, divisor_override or 0)


def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Greatest elements of windows of the last two axes, with their places in the plane."""
    step = kernel_size if stride is None else stride
    result = F.max_pool2d(input, kernel_size, step, padding, dilation, return_indices, ceil_mode)
    return (result[0], F.cast(result[1], int64)) if return_indices else result


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Greatest elements of so many windows of the last axis, with their places."""
    size = output_size if isinstance(output_size, int) else output_size[0]
    result = F.adaptive_max_pool2d(F.expand_dims(input, -2), (1, size), return_indices)
    return tuple(F.squeeze(each, -2) for each in result) if return_indices else F.squeeze(result, -2)


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Greatest elements of so many windows of the last two axes, with their places."""
    return F.adaptive_max_pool2d(input, output_size, return_indices)


def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """The windows of a max pooling with their greatest elements at their places, 0 elsewhere."""
    size = None if output_size is None else tuple(output_size)
    return F.max_unpool2d(input, indices, kernel_size, stride, padding, size)


publish(__name__)
