"""Images (NCHW): sampled on a grid, cut into patches and put together again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from msdump.frontends.torchair.ge.builder import Builder
from msdump.frontends.torchair.ge.graph import GeTensor
from msdump.frontends.torchair.ge.registry import converter, kernel

_INTERPOLATIONS = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")

_aten = torch.ops.aten


@converter("aten.affine_grid_generator.default")
def affine_grid(ge: Builder, theta: GeTensor, size: Sequence[Any], align_corners: bool) -> GeTensor:
    return ge.op("AffineGrid", {"theta": theta, "output_size": ge.sizes(size)}, {"align_corners": align_corners})


@kernel("AffineGrid", host=("output_size",))
def affine_grid_kernel(theta: Any, output_size: list[int], *, align_corners: bool) -> Any:
    return _aten.affine_grid_generator.default(theta, output_size, align_corners)


@converter("aten.grid_sampler_2d.default")
def grid_sampler(
    ge: Builder, x: GeTensor, grid: GeTensor, interpolation: int, padding: int, align_corners: bool
) -> GeTensor:
    return ge.op("GridSampler2D", {"x": x, "grid": grid}, _sampling(interpolation, padding, align_corners))


@kernel("GridSampler2D")
def grid_sampler_kernel(x: Any, grid: Any, *, interpolation_mode: str, padding_mode: str, align_corners: bool) -> Any:
    modes = _INTERPOLATIONS.index(interpolation_mode), _PADDINGS.index(padding_mode)
    return _aten.grid_sampler_2d.default(x, grid, *modes, align_corners)


@converter("aten.grid_sampler_2d_backward.default")
def grid_sampler_backward(
    ge: Builder,
    grad: GeTensor,
    x: GeTensor,
    grid: GeTensor,
    interpolation: int,
    padding: int,
    align_corners: bool,
    output_mask: Sequence[bool],
) -> tuple[GeTensor, ...]:
    """Both gradients, whatever output_mask says."""
    attrs = _sampling(interpolation, padding, align_corners)
    return ge.multi_op("GridSampler2DGrad", {"grad": grad, "x": x, "grid": grid}, ("dx", "dgrid"), attrs)


@kernel("GridSampler2DGrad")
def grid_sampler_grad_kernel(
    grad: Any, x: Any, grid: Any, *, interpolation_mode: str, padding_mode: str, align_corners: bool
) -> Any:
    """-> dx, dgrid"""
    modes = _INTERPOLATIONS.index(interpolation_mode), _PADDINGS.index(padding_mode)
    return _aten.grid_sampler_2d_backward.default(grad, x, grid, *modes, align_corners, [True, True])


def _sampling(interpolation: int, padding: int, align_corners: bool) -> dict[str, Any]:
    return {
        "interpolation_mode": _INTERPOLATIONS[interpolation],
        "padding_mode": _PADDINGS[padding],
        "align_corners": align_corners,
    }


@converter("aten.im2col.default")
def im2col(
    ge: Builder,
    x: GeTensor,
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> GeTensor:
    attrs = {
        "ksizes": list(kernel_size),
        "strides": list(stride),
        "dilations": list(dilation),
        "padding_mode": "CALCULATED",
        "pads": list(padding),
    }
    return ge.op("Im2col", {"x": x}, attrs)


@kernel("Im2col")
def im2col_kernel(
    x: Any, *, ksizes: list[int], strides: list[int], dilations: list[int], padding_mode: str, pads: list[int]
) -> Any:
    return _aten.im2col.default(x, ksizes, dilations, pads, strides)


@converter("aten.col2im.default")
def col2im(
    ge: Builder,
    x: GeTensor,
    output_size: Sequence[Any],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> GeTensor:
    attrs = {
        "kernel_size": list(kernel_size),
        "dilation": list(dilation),
        "padding": list(padding),
        "stride": list(stride),
    }
    return ge.op("Col2im", {"x": x, "output_size": ge.sizes(output_size)}, attrs)


@kernel("Col2im", host=("output_size",))
def col2im_kernel(
    x: Any,
    output_size: list[int],
    *,
    kernel_size: list[int],
    dilation: list[int],
    padding: list[int],
    stride: list[int],
) -> Any:
    return _aten.col2im.default(x, output_size, kernel_size, dilation, padding, stride)
