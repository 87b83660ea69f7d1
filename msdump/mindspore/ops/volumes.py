"""Convolutions of three dimensions, under MindSpore's types of operators."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.ops.declaration import operator
from msdump.mindspore.ops.windows import Sizes, only, pads_of, sizes


@operator("Conv3D")
def _conv3d(
    torch: Any,
    x: Tensor,
    weight: Tensor,
    out_channel: int,
    kernel_size: Sizes,
    mode: int = 1,
    pad_mode: str = "valid",
    pad: Any = 0,
    stride: Any = 1,
    dilation: Any = 1,
    group: int = 1,
    data_format: str = "NCDHW",
) -> Tensor:
    only("Conv3D", "mode", mode, 1)
    only("Conv3D", "data_format", data_format, "NCDHW")
    functional = torch.nn.functional
    steps, spread = sizes(stride, 3), sizes(dilation, 3)
    pads = pads_of(pad_mode, x.shape[-3:], sizes(kernel_size, 3), steps, spread, pad)
    padded = functional.pad(x, pads) if any(pads) else x
    return functional.conv3d(padded, weight, None, steps, 0, spread, group)


@operator("Conv3DTranspose")
def _conv3d_transpose(
    torch: Any,
    dout: Tensor,
    weight: Tensor,
    in_channel: int,
    out_channel: int,
    kernel_size: Sizes,
    mode: int = 1,
    pad_mode: str = "valid",
    pad: Any = 0,
    stride: Any = 1,
    dilation: Any = 1,
    group: int = 1,
    output_padding: Any = 0,
    data_format: str = "NCDHW",
) -> Tensor:
    only("Conv3DTranspose", "mode", mode, 1)
    only("Conv3DTranspose", "data_format", data_format, "NCDHW")
    kernel, steps, spread = sizes(kernel_size, 3), sizes(stride, 3), sizes(dilation, 3)
    whole = torch.nn.functional.conv_transpose3d(dout, weight, None, steps, 0, sizes(output_padding, 3), group, spread)
    image = [length * step for length, step in zip(dout.shape[-3:], steps, strict=True)]
    pads = pads_of(pad_mode, image, kernel, steps, spread, pad)
    lengths = list(whole.shape[-3:])
    for axis in range(3):
        before, after = pads[2 * (2 - axis)], pads[2 * (2 - axis) + 1]
        length = image[axis] if pad_mode.lower() == "same" else lengths[axis] - before - after
        whole = _cut(torch, whole, axis + 2, before, length)
    return whole


def _cut(torch: Any, tensor: Any, axis: int, start: int, length: int) -> Any:
    """`length` elements from `start` on; zeros where the tensor is shorter than that."""
    missing = start + length - tensor.shape[axis]
    if missing > 0:
        pads = [0, 0] * (tensor.ndim - 1 - axis) + [0, missing]
        tensor = torch.nn.functional.pad(tensor, pads)
    return tensor.narrow(axis, start, length)


publish(__name__)
