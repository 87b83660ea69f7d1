"""Pooling of volumes and its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from msdump.frontends.torchair.ge.builder import Builder
from msdump.frontends.torchair.ge.converters.convolution import size_of
from msdump.frontends.torchair.ge.graph import GeTensor
from msdump.frontends.torchair.ge.registry import converter


@converter("aten.max_pool3d_with_indices.default")
def max_pool(
    ge: Builder,
    x: GeTensor,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> tuple[GeTensor, ...]:
    attrs = _max_attrs(kernel_size, stride, padding, dilation, ceil_mode)
    y, argmax = ge.multi_op("MaxPool3DWithArgmaxV2", {"x": x}, ("y", "argmax"), attrs)
    return y, ge.cast(argmax, torch.int64)


@converter("aten.max_pool3d_with_indices_backward.default")
def max_pool_backward(ge: Builder, dy: GeTensor, x: GeTensor, *window: Any) -> GeTensor:
    *sizes, indices = window
    inputs = {"x": x, "grads": dy, "argmax": ge.cast(indices, torch.int32)}
    return ge.op("MaxPool3DGradWithArgmax", inputs, _max_attrs(*sizes))


@converter("aten.avg_pool3d.default")
def avg_pool(ge: Builder, x: GeTensor, *window: Any) -> GeTensor:
    return ge.op("AvgPool3D", {"x": x}, _avg_attrs(*window))


@converter("aten.avg_pool3d_backward.default")
def avg_pool_backward(ge: Builder, dy: GeTensor, x: GeTensor, *window: Any) -> GeTensor:
    inputs = {"orig_input_shape": size_of(ge, x), "grads": dy}
    return ge.op("AvgPool3DGrad", inputs, _avg_attrs(*window), output="output")


@converter("aten._adaptive_avg_pool3d.default")
def adaptive_avg_pool(ge: Builder, x: GeTensor, output_size: Sequence[int]) -> GeTensor:
    return ge.op("AdaptiveAvgPool3d", {"x": x}, {"output_size": list(output_size)})


@converter("aten._adaptive_avg_pool3d_backward.default")
def adaptive_avg_pool_backward(ge: Builder, dy: GeTensor, x: GeTensor) -> GeTensor:
    return ge.op("AdaptiveAvgPool3dGrad", {"y_grad": dy, "x": x}, output="x_grad")


def _max_attrs(
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> dict[str, Any]:
    return {
        "ksize": _triple(kernel_size),
        "strides": _triple(stride or kernel_size),
        "pads": _triple(padding),
        "dilation": _triple(dilation),
        "ceil_mode": ceil_mode,
        "data_format": "NCDHW",
    }


def _avg_attrs(
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> dict[str, Any]:
    return {
        "ksize": [1, 1, *_triple(kernel_size)],
        "strides": [1, 1, *_triple(stride or kernel_size)],
        "pads": [pad for pad in _triple(padding) for _ in range(2)],
        "ceil_mode": ceil_mode,
        "count_include_pad": count_include_pad,
        "divisor_override": divisor_override or 0,
        "data_format": "NCDHW",
    }


def _triple(values: Sequence[int]) -> list[int]:
    return list(values) if len(values) == 3 else list(values) * 3
