"""GE operators of pooling, NCHW."""

from __future__ import annotations

from typing import Any

import torch

from msdump.frontends.torchair.ge.registry import kernel

aten = torch.ops.aten


@kernel("MaxPoolWithArgmaxV1")
def max_pool(
    x: Any, *, ksize: list[int], strides: list[int], pads: list[int], dilation: list[int], ceil_mode: bool
) -> Any:
    """-> y, argmax int32 (places in the plane of H x W). The window is in the middle of all four lists."""
    y, argmax = aten.max_pool2d_with_indices.default(x, ksize[1:3], strides[1:3], pads[1:3], dilation[1:3], ceil_mode)
    return y, argmax.to(torch.int32)


@kernel("MaxPoolGradWithArgmaxV1")
def max_pool_grad(
    x: Any,
    grad: Any,
    argmax: Any,
    *,
    ksize: list[int],
    strides: list[int],
    pads: list[int],
    dilation: list[int],
    ceil_mode: bool,
) -> Any:
    return aten.max_pool2d_with_indices_backward.default(
        grad, x, ksize[1:3], strides[1:3], pads[1:3], dilation[1:3], ceil_mode, argmax.to(torch.int64)
    )


@kernel("AvgPoolV2")
def avg_pool(
    x: Any,
    *,
    ksize: list[int],
    strides: list[int],
    padding_mode: str,
    pads: list[int],
    data_format: str,
    global_pooling: bool,
    ceil_mode: bool,
    exclusive: bool,
    divisor_override: int = 0,
) -> Any:
    return aten.avg_pool2d.default(
        x, ksize[2:], strides[2:], pads[::2], ceil_mode, not exclusive, divisor_override or None
    )


@kernel("AvgPoolV2Grad", host=("orig_input_shape",))
def avg_pool_grad(
    orig_input_shape: list[int],
    input_grad: Any,
    *,
    ksize: list[int],
    strides: list[int],
    padding_mode: str,
    pads: list[int],
    data_format: str,
    global_pooling: bool,
    ceil_mode: bool,
    exclusive: bool,
    divisor_override: int = 0,
) -> Any:
    x = input_grad.new_empty(orig_input_shape)
    return aten.avg_pool2d_backward.default(
        input_grad, x, ksize[2:], strides[2:], pads[::2], ceil_mode, not exclusive, divisor_override or None
    )


@kernel("AdaptiveAvgPool2d")
def adaptive_avg_pool(x: Any, *, output_size: list[int]) -> Any:
    return torch._adaptive_avg_pool2d(x, output_size)


@kernel("AdaptiveAvgPool2dGrad", host=("orig_input_shape",))
def adaptive_avg_pool_grad(input_grad: Any, orig_input_shape: list[int]) -> Any:
    return aten._adaptive_avg_pool2d_backward.default(input_grad, input_grad.new_empty(orig_input_shape))


@kernel("AdaptiveMaxPool2d")
def adaptive_max_pool(x: Any, *, output_size: list[int]) -> Any:
    """-> y, argmax int32"""
    y, argmax = aten.adaptive_max_pool2d.default(x, output_size)
    return y, argmax.to(torch.int32)


@kernel("AdaptiveMaxPool2dGrad")
def adaptive_max_pool_grad(x: Any, grad: Any, argmax: Any) -> Any:
    return aten.adaptive_max_pool2d_backward.default(grad, x, argmax)
