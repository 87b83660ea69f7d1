"""Pooling and its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from msdump.frontends.torchair.ge.builder import Builder
from msdump.frontends.torchair.ge.converters.convolution import size_of
from msdump.frontends.torchair.ge.graph import GeTensor
from msdump.frontends.torchair.ge.registry import converter


@converter("aten.max_pool2d_with_indices.default")
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
    y, argmax = ge.multi_op("MaxPoolWithArgmaxV1", {"x": x}, ("y", "argmax"), attrs)
    return y, ge.cast(ge.op("Identity", {"x": argmax}), torch.int64)


@converter("aten.max_pool2d_with_indices_backward.default")
def max_pool_backward(
    ge: Builder,
    dy: GeTensor,
    x: GeTensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    indices: GeTensor,
) -> GeTensor:
    """The places of the maxima are looked for again, as TorchAir does: its operator keeps them packed."""
    attrs = _max_attrs(kernel_size, stride, padding, dilation, ceil_mode)
    _, argmax = ge.multi_op("MaxPoolWithArgmaxV1", {"x": x}, ("y", "argmax"), attrs)
    return ge.op("MaxPoolGradWithArgmaxV1", {"x": x, "grad": dy, "argmax": argmax}, attrs)


@converter("aten.avg_pool2d.default")
def avg_pool(ge: Builder, x: GeTensor, *window: Any) -> GeTensor:
    return ge.op("AvgPoolV2", {"x": x}, _avg_attrs(*window))


@converter("aten.avg_pool2d_backward.default")
def avg_pool_backward(ge: Builder, dy: GeTensor, x: GeTensor, *window: Any) -> GeTensor:
    inputs = {"orig_input_shape": size_of(ge, x), "input_grad": dy}
    return ge.op("AvgPoolV2Grad", inputs, _avg_attrs(*window), output="out_grad")


@converter("aten._adaptive_avg_pool2d.default")
def adaptive_avg_pool(ge: Builder, x: GeTensor, output_size: Sequence[int]) -> GeTensor:
    return ge.op("AdaptiveAvgPool2d", {"x": x}, {"output_size": list(output_size)})


@converter("aten._adaptive_avg_pool2d_backward.default")
def adaptive_avg_pool_backward(ge: Builder, dy: GeTensor, x: GeTensor) -> GeTensor:
    inputs = {"input_grad": dy, "orig_input_shape": size_of(ge, x)}
    return ge.op("AdaptiveAvgPool2dGrad", inputs, output="output_grad")


@converter("aten.adaptive_max_pool2d.default")
def adaptive_max_pool(ge: Builder, x: GeTensor, output_size: Sequence[int]) -> tuple[GeTensor, ...]:
    y, argmax = ge.multi_op("AdaptiveMaxPool2d", {"x": x}, ("y", "argmax"), {"output_size": list(output_size)})
    return y, ge.cast(argmax, torch.int64)


@converter("aten.adaptive_max_pool2d_backward.default")
def adaptive_max_pool_backward(ge: Builder, dy: GeTensor, x: GeTensor, indices: GeTensor) -> GeTensor:
    return ge.op("AdaptiveMaxPool2dGrad", {"x": x, "grad": dy, "argmax": indices})


def _max_attrs(
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> dict[str, Any]:
    return {
        "ksize": [1, *_pair(kernel_size), 1],
        "strides": [1, *_pair(stride or kernel_size), 1],
        "pads": [1, *_pair(padding), 1],
        "dilation": [1, *_pair(dilation), 1],
        "ceil_mode": ceil_mode,
    }


def _avg_attrs(
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> dict[str, Any]:
    attrs: dict[str, Any] = {
        "ksize": [1, 1, *_pair(kernel_size)],
        "strides": [1, 1, *_pair(stride or kernel_size)],
        "padding_mode": "CALCULATED",
        "pads": [pad for pad in _pair(padding) for _ in range(2)],
        "data_format": "NCHW",
        "global_pooling": False,
        "ceil_mode": ceil_mode,
        "exclusive": not count_include_pad,
    }
    return attrs if divisor_override is None else {**attrs, "divisor_override": divisor_override}


def _pair(values: Sequence[int]) -> list[int]:
    return list(values) if len(values) == 2 else list(values) * 2
