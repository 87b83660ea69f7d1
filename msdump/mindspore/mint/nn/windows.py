"""Convolutions and poolings of `mindspore.mint.nn.functional`."""

from __future__ import annotations

from typing import Any

import numpy as np

from msdump.mindspore.common.dtype import int64
from msdump.mindspore.common.signatures import in_forms, of_axes
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call
from msdump.mindspore.names import publish
from msdump.mindspore.ops import function as F
from msdump.mindspore.ops import operations as P
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


def _avg_pool(ndim: int, input: Tensor, kernel_size: Any, stride: Any, padding: Any, *options: Any) -> Tensor:
    window: list[Any] = [kernel_size, kernel_size if stride is None else stride, padding]
    if ndim == 1:
        window = [sizes(each, 1)[0] for each in window]
    else:
        options = (*options[:-1], options[-1] or 0)
    function: Any = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[ndim - 1]
    return function(input, *window, *options)


_CONV = "input weight bias=None stride=1 padding=0 dilation=1 groups=1"
_POOL = "input kernel_size stride=None padding=0 ceil_mode=False count_include_pad=True"
_TABLE = f"""
    conv1d {_CONV}
    conv2d {_CONV}
    conv3d {_CONV}
    avg_pool1d {_POOL}
    avg_pool2d {_POOL} divisor_override=None
    avg_pool3d {_POOL} divisor_override=None
    adaptive_max_pool2d input output_size return_indices=False
"""
_COMPUTING = {
    **vars(F),
    **of_axes(
        "conv{}d", _conv, 'Convolution of the last axes, {}, with (O, C / groups, ...); padding: a size, "same".'
    ),
    **of_axes("avg_pool{}d", _avg_pool, "Means of windows of the last axes, {}."),
}

globals().update(in_forms(_TABLE, _COMPUTING, __name__))


def conv_transpose2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Tensor:  # fmt: skip
    """The gradient of a convolution, of (N, C, H, W) and (C, O / groups, kh, kw), as the operator that it is."""
    steps, pads, more, apart = (sizes(each, 2) for each in (stride, padding, output_padding, dilation))
    kernel = (weight.shape[2], weight.shape[3])
    size = [
        (count - 1) * steps[axis] - 2 * pads[axis] + apart[axis] * (kernel[axis] - 1) + more[axis] + 1
        for axis, count in enumerate(input.shape[2:])
    ]
    shape = (input.shape[0], weight.shape[1] * groups, *size)
    ends = (pads[0], pads[0], pads[1], pads[1])
    convolution = P.Conv2D(weight.shape[0], kernel, 1, "pad", ends, tuple(steps), tuple(apart), groups)
    lengths = Tensor(np.array(shape, np.int64))
    output = call("Conv2DBackpropInput", input, weight, lengths, input_sizes=shape, **convolution.attrs)
    return output if bias is None else call("BiasAdd", output, bias, format="NCHW")


def max_pool2d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """Greatest elements of windows of the last two axes, with their places in the plane."""
    step = kernel_size if stride is None else stride
    result = F.max_pool2d(input, kernel_size, step, padding, dilation, return_indices, ceil_mode)
    return (result[0], F.cast(result[1], int64)) if return_indices else result


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Greatest elements of so many windows of the last axis, with their places."""
    size = output_size if isinstance(output_size, int) else output_size[0]
    result = F.adaptive_max_pool2d(F.expand_dims(input, -2), (1, size), return_indices)
    return tuple(F.squeeze(each, -2) for each in result) if return_indices else F.squeeze(result, -2)


def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """The windows of a max pooling with their greatest elements at their places, 0 elsewhere."""
    size = None if output_size is None else tuple(output_size)
    return F.max_unpool2d(input, indices, kernel_size, stride, padding, size)


publish(__name__)
