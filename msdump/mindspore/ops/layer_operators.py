"""Operators that only layers of `mindspore.nn` call, as MindSpore's own "inner" operators."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.ops.declaration import operator

Sizes = tuple[int, ...]


@operator("ClipByNorm", init="axis")
def clip_by_norm_of(torch: Any, x: Tensor, clip_norm: Tensor, axis: Any = None) -> Any:
    """x, scaled down where its 2-norm (over axes, else all) exceeds clip_norm."""
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    length: Any = torch.sqrt((x * x).sum(axes, keepdim=True))
    return x * clip_norm / torch.maximum(length, torch.as_tensor(clip_norm).expand_as(length))


@operator("ExtractImagePatches", init="ksizes strides rates padding")
def extract_image_patches(
    torch: Any, input_x: Tensor, ksizes: Sizes, strides: Sizes, rates: Sizes, padding: str = "valid"
) -> Any:
    """Patches of (N, C, H, W) as channels: (N, kh * kw * C, rows, columns); channels are the last to count."""
    (kh, kw), (sh, sw), (rh, rw) = ksizes[-2:], strides[-2:], rates[-2:]
    height, width = x_shape = input_x.shape[-2:]
    spans = (kh - 1) * rh + 1, (kw - 1) * rw + 1
    x: Any = input_x
    if padding.lower() == "same":
        pads: list[int] = []
        for length, span, step in zip(x_shape, spans, (sh, sw), strict=True):
            total = max((-(-length // step) - 1) * step + span - length, 0)
            pads = [total // 2, total - total // 2, *pads]
        x = torch.nn.functional.pad(x, pads)
        height, width = x.shape[-2:]
    rows, columns = (height - spans[0]) // sh + 1, (width - spans[1]) // sw + 1
    count, channels = x.shape[:2]
    patches = torch.nn.functional.unfold(x, (kh, kw), (rh, rw), 0, (sh, sw))
    patches = patches.reshape(count, channels, kh * kw, rows, columns).transpose(1, 2)
    return patches.reshape(count, kh * kw * channels, rows, columns)


@operator("InstanceNorm", init="epsilon momentum")
def instance_norm_of(
    torch: Any, input_x: Tensor, gamma: Tensor, beta: Tensor, mean: Tensor, variance: Tensor, epsilon: float = 1e-5,
    momentum: float = 0.1,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Each channel of each sample with mean 0 and variance 1, scaled and moved; also its mean and variance."""
    x: Any = input_x
    axes = tuple(range(2, x.ndim))
    average = x.mean(axes, keepdim=True)
    spread = ((x - average) ** 2).mean(axes, keepdim=True)
    shape = (1, -1, *(1,) * len(axes))
    weight, bias = torch.reshape(gamma, shape), torch.reshape(beta, shape)
    result = (x - average) / torch.sqrt(spread + epsilon) * weight + bias
    return result, average.reshape(x.shape[:2]), spread.reshape(x.shape[:2])
