"""GE operators of pooling, NCDHW."""

from __future__ import annotations

from typing import Any

import torch

from msdump.frontends.torchair.ge.registry import kernel

_aten = torch.ops.aten


@kernel("MaxPool3DWithArgmaxV2")
def max_pool(x: Any, *, data_format: str, **window: Any) -> Any:
    """-> y, argmax int32 (places in the volume of D x H x W)"""
    y, argmax = _aten.max_pool3d_with_indices.default(x, *_max_window(**window))
    return y, argmax.to(torch.int32)


@kernel("MaxPool3DGradWithArgmax")
def max_pool_grad(x: Any, grads: Any, argmax: Any, *, data_format: str, **window: Any) -> Any:
    return _aten.max_pool3d_with_indices_backward.default(grads, x, *_max_window(**window), argmax.to(torch.int64))


def _max_window(
    ksize: list[int], strides: list[int], pads: list[int], dilation: list[int], ceil_mode: bool
) -> tuple[Any, ...]:
    return ksize, strides, pads, dilation, ceil_mode


@kernel("AvgPool3D")
def avg_pool(x: Any, *, data_format: str, **window: Any) -> Any:
    return _aten.avg_pool3d.default(x, *_avg_window(**window))


@kernel("AvgPool3DGrad", host=("orig_input_shape",))
def avg_pool_grad(orig_input_shape: list[int], grads: Any, *, data_format: str, **window: Any) -> Any:
    return _aten.avg_pool3d_backward.default(grads, grads.new_empty(orig_input_shape), *_avg_window(**window))


def _avg_window(
    ksize: list[int],
    strides: list[int],
    pads: list[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int,
) -> tuple[Any, ...]:
    return ksize[2:], strides[2:], pads[::2], ceil_mode, count_include_pad, divisor_override or None


@kernel("AdaptiveAvgPool3d")
def adaptive_avg_pool(x: Any, *, output_size: list[int]) -> Any:
    return _aten._adaptive_avg_pool3d.default(x, output_size)


@kernel("AdaptiveAvgPool3dGrad")
def adaptive_avg_pool_grad(y_grad: Any, x: Any) -> Any:
    return _aten._adaptive_avg_pool3d_backward.default(y_grad, x)
