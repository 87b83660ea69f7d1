"""GE operators of images, NCHW."""

from __future__ import annotations

from typing import Any

import torch

from msdump.frontends.torchair.ge.registry import kernel

_aten = torch.ops.aten
_INTERPOLATIONS = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_PADDINGS = {"zeros": 0, "border": 1, "reflection": 2}


@kernel("AffineGrid", host=("output_size",))
def affine_grid(theta: Any, output_size: list[int], *, align_corners: bool) -> Any:
    return _aten.affine_grid_generator.default(theta, output_size, align_corners)


@kernel("GridSampler2D")
def grid_sampler(x: Any, grid: Any, *, interpolation_mode: str, padding_mode: str, align_corners: bool) -> Any:
    modes = _INTERPOLATIONS[interpolation_mode], _PADDINGS[padding_mode]
    return _aten.grid_sampler_2d.default(x, grid, *modes, align_corners)


@kernel("GridSampler2DGrad")
def grid_sampler_grad(
    grad: Any, x: Any, grid: Any, *, interpolation_mode: str, padding_mode: str, align_corners: bool
) -> Any:
    """-> dx, dgrid"""
    modes = _INTERPOLATIONS[interpolation_mode], _PADDINGS[padding_mode]
    return _aten.grid_sampler_2d_backward.default(grad, x, grid, *modes, align_corners, [True, True])


@kernel("Im2col")
def im2col(
    x: Any, *, ksizes: list[int], strides: list[int], dilations: list[int], padding_mode: str, pads: list[int]
) -> Any:
    return _aten.im2col.default(x, ksizes, dilations, pads, strides)


@kernel("Col2im", host=("output_size",))
def col2im(
    x: Any,
    output_size: list[int],
    *,
    kernel_size: list[int],
    dilation: list[int],
    padding: list[int],
    stride: list[int],
) -> Any:
    return _aten.col2im.default(x, output_size, kernel_size, dilation, padding, stride)
