"""Pooling of planes (NCHW) and of volumes (NCDHW), and its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from msdump.torchair.ge.builder import Builder
from msdump.torchair.ge.graph import GeTensor
from msdump.torchair.ge.ops.convolution import size_of
from msdump.torchair.ge.registry import converter, kernel
from msdump.torchair.ge.rows import lists, row

_aten = torch.ops.aten


@converter("aten.max_pool2d_with_indices.default")
def max_pool(ge: Builder, x: GeTensor, *window: Any, **options: Any) -> tuple[GeTensor, ...]:
    y, argmax = ge.multi_op("MaxPoolWithArgmaxV1", {"x": x}, ("y", "argmax"), _max_attrs(2, *window, **options))
    return y, ge.cast(ge.op("Identity", {"x": argmax}), torch.int64)


@kernel("MaxPoolWithArgmaxV1")
def max_pool_kernel(x: torch.Tensor, **window: object) -> tuple[torch.Tensor, ...]:
    """-> y, argmax int32 (places in the plane of H x W). The window is in the middle of all four lists."""
    y, argmax = _aten.max_pool2d_with_indices.default(x, *_inner_max_window(**window))
    return y, argmax.to(torch.int32)


@converter("aten.max_pool2d_with_indices_backward.default")
def max_pool_backward(ge: Builder, dy: GeTensor, x: GeTensor, *window: Any) -> GeTensor:
    """The places of the maxima are looked for again, as TorchAir does: its operator keeps them packed."""
    attrs = _max_attrs(2, *window[:-1])
    _, argmax = ge.multi_op("MaxPoolWithArgmaxV1", {"x": x}, ("y", "argmax"), attrs)
    return ge.op("MaxPoolGradWithArgmaxV1", {"x": x, "grad": dy, "argmax": argmax}, attrs)


@kernel("MaxPoolGradWithArgmaxV1")
def max_pool_grad_kernel(x: torch.Tensor, grad: torch.Tensor, argmax: torch.Tensor, **window: object) -> Any:
    indices = argmax.to(torch.int64)
    return _aten.max_pool2d_with_indices_backward.default(grad, x, *_inner_max_window(**window), indices)


def _inner_max_window(**window: Any) -> list[Any]:
    *sizes, ceil_mode = _max_window(**window)
    return [*(values[1:3] for values in sizes), ceil_mode]


@converter("aten.avg_pool2d.default")
def avg_pool(ge: Builder, x: GeTensor, *window: Any) -> GeTensor:
    return ge.op("AvgPoolV2", {"x": x}, _avg_attrs(*window))


@kernel("AvgPoolV2")
def avg_pool_kernel(x: torch.Tensor, **attrs: Any) -> Any:
    return _aten.avg_pool2d.default(x, *_inner_avg_window(**attrs))


@converter("aten.avg_pool2d_backward.default")
def avg_pool_backward(ge: Builder, dy: GeTensor, x: GeTensor, *window: Any) -> GeTensor:
    inputs = {"orig_input_shape": size_of(ge, x), "input_grad": dy}
    return ge.op("AvgPoolV2Grad", inputs, _avg_attrs(*window), output="out_grad")


@kernel("AvgPoolV2Grad", host=("orig_input_shape",))
def avg_pool_grad_kernel(orig_input_shape: list[int], input_grad: torch.Tensor, **attrs: Any) -> Any:
    x = input_grad.new_empty(orig_input_shape)
    return _aten.avg_pool2d_backward.default(input_grad, x, *_inner_avg_window(**attrs))


def _inner_avg_window(
    ksize: list[int],
    strides: list[int],
    pads: list[int],
    ceil_mode: bool,
    exclusive: bool,
    divisor_override: int = 0,
    **_: object,
) -> tuple[Any, ...]:
    return ksize[2:], strides[2:], pads[::2], ceil_mode, not exclusive, divisor_override or None


row("aten._adaptive_avg_pool2d.default", "AdaptiveAvgPool2d", "x", *lists("output_size"))
row("aten._adaptive_avg_pool3d.default", "AdaptiveAvgPool3d", "x", *lists("output_size"))
row("aten._adaptive_avg_pool3d_backward.default", "AdaptiveAvgPool3dGrad", "y_grad", "x", output="x_grad")
row("aten.adaptive_max_pool2d_backward.default", "AdaptiveMaxPool2dGrad", "grad", "x", "argmax", order="x grad argmax")


@converter("aten._adaptive_avg_pool2d_backward.default")
def adaptive_avg_pool_backward(ge: Builder, dy: GeTensor, x: GeTensor) -> GeTensor:
    inputs = {"input_grad": dy, "orig_input_shape": size_of(ge, x)}
    return ge.op("AdaptiveAvgPool2dGrad", inputs, output="output_grad")


@kernel("AdaptiveAvgPool2dGrad", host=("orig_input_shape",))
def adaptive_avg_pool_grad_kernel(input_grad: torch.Tensor, orig_input_shape: list[int]) -> Any:
    return _aten._adaptive_avg_pool2d_backward.default(input_grad, input_grad.new_empty(orig_input_shape))


@converter("aten.adaptive_max_pool2d.default")
def adaptive_max_pool(ge: Builder, x: GeTensor, output_size: Sequence[int]) -> tuple[GeTensor, ...]:
    y, argmax = ge.multi_op("AdaptiveMaxPool2d", {"x": x}, ("y", "argmax"), {"output_size": list(output_size)})
    return y, ge.cast(argmax, torch.int64)


@kernel("AdaptiveMaxPool2d")
def adaptive_max_pool_kernel(x: torch.Tensor, *, output_size: list[int]) -> tuple[torch.Tensor, ...]:
    """-> y, argmax int32"""
    y, argmax = _aten.adaptive_max_pool2d.default(x, output_size)
    return y, argmax.to(torch.int32)


def _max_attrs(
    axes: int,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> dict[str, object]:
    """Sizes of a window; in a plane they stand between those of the samples and the channels."""
    sizes = {"ksize": kernel_size, "strides": stride or kernel_size, "pads": padding, "dilation": dilation}
    ends = [1] if axes == 2 else []
    attrs: dict[str, object] = {name: [*ends, *_each(values, axes), *ends] for name, values in sizes.items()}
    return {**attrs, "ceil_mode": ceil_mode, **({} if axes == 2 else {"data_format": "NCDHW"})}


def _avg_attrs(
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> dict[str, object]:
    attrs: dict[str, object] = {
        "ksize": [1, 1, *_each(kernel_size, 2)],
        "strides": [1, 1, *_each(stride or kernel_size, 2)],
        "padding_mode": "CALCULATED",
        "pads": [pad for pad in _each(padding, 2) for _ in range(2)],
        "data_format": "NCHW",
        "global_pooling": False,
        "ceil_mode": ceil_mode,
        "exclusive": not count_include_pad,
    }
    return attrs if divisor_override is None else {**attrs, "divisor_override": divisor_override}


def _each(values: Sequence[int], axes: int) -> list[int]:
    return list(values) if len(values) == axes else list(values) * axes


@converter("aten.max_pool3d_with_indices.default")
def max_pool3d(ge: Builder, x: GeTensor, *window: Any, **options: Any) -> tuple[GeTensor, ...]:
    y, argmax = ge.multi_op("MaxPool3DWithArgmaxV2", {"x": x}, ("y", "argmax"), _max_attrs(3, *window, **options))
    return y, ge.cast(argmax, torch.int64)


@kernel("MaxPool3DWithArgmaxV2")
def max_pool3d_kernel(x: torch.Tensor, *, data_format: str, **window: Any) -> tuple[torch.Tensor, ...]:
    """-> y, argmax int32 (places in the volume of D x H x W)"""
    y, argmax = _aten.max_pool3d_with_indices.default(x, *_max_window(**window))
    return y, argmax.to(torch.int32)


def _max_window(
    ksize: list[int], strides: list[int], pads: list[int], dilation: list[int], ceil_mode: bool
) -> tuple[Any, ...]:
    return ksize, strides, pads, dilation, ceil_mode


@converter("aten.max_pool3d_with_indices_backward.default")
def max_pool3d_backward(ge: Builder, dy: GeTensor, x: GeTensor, *window: Any) -> GeTensor:
    *sizes, indices = window
    inputs = {"x": x, "grads": dy, "argmax": ge.cast(indices, torch.int32)}
    return ge.op("MaxPool3DGradWithArgmax", inputs, _max_attrs(3, *sizes))


@kernel("MaxPool3DGradWithArgmax")
def max_pool3d_grad_kernel(
    x: torch.Tensor, grads: torch.Tensor, argmax: torch.Tensor, *, data_format: str, **window: Any
) -> Any:
    return _aten.max_pool3d_with_indices_backward.default(grads, x, *_max_window(**window), argmax.to(torch.int64))


@converter("aten.avg_pool3d.default")
def avg_pool3d(ge: Builder, x: GeTensor, *window: Any) -> GeTensor:
    return ge.op("AvgPool3D", {"x": x}, _avg_attrs3d(*window))


@kernel("AvgPool3D")
def avg_pool3d_kernel(x: torch.Tensor, *, data_format: str, **window: Any) -> Any:
    return _aten.avg_pool3d.default(x, *_avg_window(**window))


def _avg_window(
    ksize: list[int],
    strides: list[int],
    pads: list[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int,
) -> tuple[Any, ...]:
    return ksize[2:], strides[2:], pads[::2], ceil_mode, count_include_pad, divisor_override or None


@converter("aten.avg_pool3d_backward.default")
def avg_pool3d_backward(ge: Builder, dy: GeTensor, x: GeTensor, *window: Any) -> GeTensor:
    inputs = {"orig_input_shape": size_of(ge, x), "grads": dy}
    return ge.op("AvgPool3DGrad", inputs, _avg_attrs3d(*window), output="output")


@kernel("AvgPool3DGrad", host=("orig_input_shape",))
def avg_pool3d_grad_kernel(orig_input_shape: list[int], grads: torch.Tensor, *, data_format: str, **window: Any) -> Any:
    return _aten.avg_pool3d_backward.default(grads, grads.new_empty(orig_input_shape), *_avg_window(**window))


def _avg_attrs3d(
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> dict[str, object]:
    return {
        "ksize": [1, 1, *_each(kernel_size, 3)],
        "strides": [1, 1, *_each(stride or kernel_size, 3)],
        "pads": [pad for pad in _each(padding, 3) for _ in range(2)],
        "ceil_mode": ceil_mode,
        "count_include_pad": count_include_pad,
        "divisor_override": divisor_override or 0,
        "data_format": "NCDHW",
    }
