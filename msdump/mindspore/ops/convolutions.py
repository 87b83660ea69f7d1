"""Convolutions, normalisations and poolings as functions, from the operators that layers use as well."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.signatures import in_forms, of_axes
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call, execute
from msdump.mindspore.names import publish
from msdump.mindspore.ops.arithmetic import add, div, matmul, maximum, mul, sqrt, square
from msdump.mindspore.ops.array import expand_dims, ones, reshape, squeeze, transpose
from msdump.mindspore.ops.declaration import operator
from msdump.mindspore.ops.primitive import Primitive, functional_classes
from msdump.mindspore.ops.reductions import sum as _sum
from msdump.mindspore.ops.windows import (
    Sizes,
    _max_pool3d_with_argmax,
    adaptive_avg_pool2d,
    adaptive_max_pool2d,
    only,
    pads_of,
    sizes,
)


def _pads(pad_mode: str, padding: Any, ndim: int) -> tuple[int, ...]:
    """Rows before and after each axis: of one number, one per axis, or both for each axis."""
    items = (padding,) * ndim if isinstance(padding, int) else tuple(int(item) for item in padding)
    if len(items) == 1:
        items *= ndim
    if len(items) not in (ndim, 2 * ndim):
        raise ValueError(
            f"For 'conv{ndim}d', the 'padding' should have {ndim} or {2 * ndim} numbers, but got {padding}."
        )
    if any(items) and pad_mode.lower() != "pad":
        raise ValueError(
            f"For 'conv{ndim}d', when the 'pad_mode' is not 'pad', the 'padding' must be 0, but got {padding}."
        )
    return items if len(items) == 2 * ndim else tuple(item for item in items for _ in range(2))


@operator("Conv3D")
def _conv3d(
    torch: Any, x: Tensor, weight: Tensor, out_channel: int, kernel_size: Sizes, mode: int = 1, pad_mode: str = "valid",
    pad: Any = 0, stride: Any = 1, dilation: Any = 1, group: int = 1, data_format: str = "NCDHW",
) -> Tensor:  # fmt: skip
    only("Conv3D", "mode", mode, 1)
    only("Conv3D", "data_format", data_format, "NCDHW")
    functional = torch.nn.functional
    steps, spread = sizes(stride, 3), sizes(dilation, 3)
    pads = pads_of(pad_mode, x.shape[-3:], sizes(kernel_size, 3), steps, spread, pad)
    padded = functional.pad(x, pads) if any(pads) else x
    return functional.conv3d(padded, weight, None, steps, 0, spread, group)


@operator("Conv3DTranspose")
def _conv3d_transpose(
    torch: Any, dout: Tensor, weight: Tensor, in_channel: int, out_channel: int, kernel_size: Sizes, mode: int = 1,
    pad_mode: str = "valid", pad: Any = 0, stride: Any = 1, dilation: Any = 1, group: int = 1, output_padding: Any = 0,
    data_format: str = "NCDHW",
) -> Tensor:  # fmt: skip
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


def _conv(
    ndim: int, input: Tensor, weight: Tensor, bias: Any, stride: Any, mode: str, padding: Any, dilation: Any, group: int
) -> Tensor:
    """One axis is computed as one of two."""
    pads, steps, spread = _pads(mode, padding, ndim), sizes(stride, ndim), sizes(dilation, ndim)
    if ndim == 1:
        picture, filters = expand_dims(input, 2), expand_dims(weight, 2)
        return squeeze(_conv(2, picture, filters, bias, (1, *steps), mode, (0, 0, *pads), (1, *spread), group), 2)
    own = {"out_channel": weight.shape[0], "kernel_size": weight.shape[2:], "mode": 1, "pad_mode": mode.lower()}
    if ndim == 3:
        output: Tensor = _conv3d(input, weight, **own, pad=pads, stride=stride, dilation=dilation, group=group)
        return output if bias is None else add(output, reshape(bias, (1, -1, 1, 1, 1)))
    own |= {"pad": pads, "stride": (1, 1, *steps), "dilation": (1, 1, *spread), "group": group, "format": "NCHW"}
    output = call("Conv2D", input, weight, **own)
    return output if bias is None else call("BiasAdd", output, bias, format="NCHW")


_CONV = "input weight bias=None stride=1 pad_mode='valid' padding=0 dilation=1 groups=1"
_TABLE = f"""
    conv1d {_CONV}
    conv2d {_CONV}
    conv3d {_CONV}
"""
_COMPUTING = of_axes("conv{}d", _conv, "Convolution of the last axes, {}, of (N, C, ...) with (O, C / groups, ...).")
conv1d, conv2d, conv3d = in_forms(_TABLE, _COMPUTING, __name__).values()


class Conv2DBackpropInput(Primitive):
    """Gradient of Conv2D for its input: out_backprop, filter and the sizes of the input."""

    def __init__(
        self, out_channel: int, kernel_size: Any, pad_mode: str = "valid", pad: Any = 0, pad_list: Any = None,
        mode: int = 1, stride: Any = 1, dilation: Any = 1, group: int = 1, data_format: str = "NCHW",
    ) -> None:  # fmt: skip
        super().__init__(
            "Conv2DBackpropInput",
            out_channel=out_channel,
            kernel_size=sizes(kernel_size, 2),
            mode=mode,
            pad_mode=pad_mode.lower(),
            pad=_pads("pad", pad if pad_list is None else pad_list, 2),
            stride=(1, 1, *sizes(stride, 2)),
            dilation=(1, 1, *sizes(dilation, 2)),
            group=group,
            format=data_format,
        )

    def compute(self, out_backprop: Tensor, filter: Tensor, input_sizes: Any) -> Tensor:
        size = tuple(int(item) for item in (input_sizes.tolist() if isinstance(input_sizes, Tensor) else input_sizes))
        operands = [out_backprop, filter, Tensor(list(size))]
        return execute("Conv2DBackpropInput", operands, {**self.attrs, "input_sizes": size})[0]


Conv2DTranspose = Conv2DBackpropInput
functional_classes.update({"Conv2DBackpropInput": Conv2DBackpropInput, "Conv2DTranspose": Conv2DTranspose})


def dense(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weight^T + bias."""
    output = matmul(input, transpose(weight, (1, 0)) if weight.ndim == 2 else weight)
    return output if bias is None else add(output, bias)


# -- normalisation -----------------------------------------------------------------------------------------------------


def batch_norm(
    input_x: Tensor, running_mean: Tensor, running_var: Tensor, weight: Tensor | None = None,
    bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Normalisation per channel; with `training` by the statistics of the batch, which move the running ones."""
    scale = ones(running_mean.shape, running_mean.dtype) if weight is None else weight
    offset = mul(running_mean, 0) if bias is None else bias
    attrs: dict[str, Any] = {"is_training": bool(training), "epsilon": eps, "format": "NCHW"}
    if training:
        attrs["momentum"] = momentum
    return execute("BatchNorm", [input_x, scale, offset, running_mean, running_var], attrs)[0]


class LayerNorm(Primitive, begin_norm_axis=1, begin_params_axis=1, epsilon=1e-7):
    """Normalisation over axes: input_x, gamma, beta -> the result, mean and variance."""


functional_classes["LayerNorm"] = LayerNorm


@operator("L2Normalize")
def _l2_normalize(torch: Any, input: Tensor, axis: Any = 0, epsilon: float = 1e-4) -> Any:
    """input / sqrt(max(sum(input ** 2), epsilon)) along axes."""
    axes = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    return input / torch.sqrt((input * input).sum(axes, keepdim=True).clamp_min(epsilon))


# -- poolings of fewer axes --------------------------------------------------------------------------------------------


def max_pool2d(
    x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, return_indices: bool = False,
    ceil_mode: bool = False,
) -> Any:  # fmt: skip
    """Largest elements under a window of (N, C, H, W), and their places in the picture."""
    kernel = sizes(kernel_size, 2)
    strides = kernel if stride is None else sizes(stride, 2)
    results = _max_pool3d_with_argmax(
        expand_dims(x, 2), (1, *kernel), (1, *strides), (0, *sizes(padding, 2)), (1, *sizes(dilation, 2)), ceil_mode
    )
    value, places = (squeeze(result, 2) for result in results)
    return (value, places) if return_indices else value


def adaptive_avg_pool1d(input: Tensor, output_size: int) -> Tensor:
    """Means of parts of (N, C, L)."""
    return squeeze(adaptive_avg_pool2d(expand_dims(input, -2), (1, output_size)), -2)


def adaptive_max_pool1d(input: Tensor, output_size: int) -> Tensor:
    """Largest elements of parts of (N, C, L)."""
    return squeeze(adaptive_max_pool2d(expand_dims(input, -2), (1, output_size)), -2)


# -- likeness ----------------------------------------------------------------------------------------------------------


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Cosine of the angle between vectors along an axis."""
    lengths = mul(_sum(square(x1), dim), _sum(square(x2), dim))
    return div(_sum(mul(x1, x2), dim), sqrt(maximum(lengths, eps * eps)))


publish(__name__)
