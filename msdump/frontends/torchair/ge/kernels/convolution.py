"""GE operators of convolution, NCHW and NCDHW.

strides, dilations   of all axes, the first two 1
pads                 before and after each spatial axis, in pairs of equals
"""

from __future__ import annotations

from typing import Any

import torch

from msdump.frontends.torchair.ge.registry import kernel


@kernel("Conv2D", "Conv3D")
def convolution(
    x: Any,
    filter: Any,
    bias: Any,
    offset_w: Any,
    *,
    strides: list[int],
    pads: list[int],
    dilations: list[int],
    groups: int,
    data_format: str,
) -> Any:
    spatial = [0] * (len(strides) - 2)
    return torch.convolution(x, filter, bias, strides[2:], pads[::2], dilations[2:], False, spatial, groups)


@kernel("Conv2DTranspose", "Conv3DTranspose", host=("input_size",))
def transposed_convolution(
    input_size: list[int],
    x: Any,
    filter: Any,
    bias: Any,
    offset_w: Any,
    *,
    strides: list[int],
    pads: list[int],
    dilations: list[int],
    groups: int,
    data_format: str,
    output_padding: list[int],
) -> Any:
    """`input_size`, that of the result, follows from the rest."""
    return torch.convolution(x, filter, bias, strides[2:], pads[::2], dilations[2:], True, output_padding[2:], groups)


@kernel("Conv2DBackpropInput", "Conv3DBackpropInput", host=("size",))
def backprop_input(
    size: list[int],
    filter: Any,
    dy: Any,
    *,
    strides: list[int],
    pads: list[int],
    dilations: list[int],
    groups: int,
    data_format: str,
) -> Any:
    # Only the size of it is looked at.
    x = dy.new_empty(size)
    return _backward(dy, x, filter, strides, pads, dilations, groups, [True, False, False])[0]


@kernel("Conv2DBackpropFilter", "Conv3DBackpropFilter", host=("size",))
def backprop_filter(
    x: Any,
    size: list[int],
    dy: Any,
    *,
    strides: list[int],
    pads: list[int],
    dilations: list[int],
    groups: int,
    data_format: str,
) -> Any:
    filter = dy.new_empty(size)
    return _backward(dy, x, filter, strides, pads, dilations, groups, [False, True, False])[1]


def _backward(
    dy: Any,
    x: Any,
    filter: Any,
    strides: list[int],
    pads: list[int],
    dilations: list[int],
    groups: int,
    wanted: list[bool],
) -> Any:
    no_padding = [0] * (len(strides) - 2)
    return torch.ops.aten.convolution_backward.default(
        dy, x, filter, None, strides[2:], pads[::2], dilations[2:], False, no_padding, groups, wanted
    )
