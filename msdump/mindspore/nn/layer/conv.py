"""Convolutions, of one to three axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from msdump.mindspore.common.dtype import DType, float32
from msdump.mindspore.common.initializer import initializer, layer_initializers
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call
from msdump.mindspore.names import explain_missing, publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.declared import check_sizes
from msdump.mindspore.ops import function as F
from msdump.mindspore.ops import operations as P
from msdump.mindspore.ops.operations import pair
from msdump.mindspore.ops.windows import sizes
from msdump.mindspore.ops.windows import sizes as window_sizes

_MODES = ("valid", "same", "pad")


class _Convolution(Cell):
    """What convolutions share: checked arguments, weight and bias (None without `has_bias`).

    ndim            axes of the window
    is_transposed   whether the weight is (in_channels, out_channels / group, ...)
    """

    ndim = 2
    is_transposed = False
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        pad_mode: str = "same",
        padding: Any = 0,
        dilation: Any = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        data_format: str = "NCHW",
        dtype: DType = float32,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels, self.group = in_channels, out_channels, group
        check_sizes(self.cls_name, kernel_size=kernel_size, stride=stride, dilation=dilation)
        self.kernel_size: Any = window_sizes(kernel_size, self.ndim)
        self.stride: Any = window_sizes(stride, self.ndim)
        self.dilation: Any = window_sizes(dilation, self.ndim)
        self.pad_mode, self.padding, self.has_bias = pad_mode, padding, has_bias
        _check(self.cls_name, (in_channels, out_channels), group, data_format, pad_mode, padding)
        shape = (in_channels, out_channels // group) if self.is_transposed else (out_channels, in_channels // group)
        weight_shape = (*shape, *self.kernel_size)
        # Source: MindSpore reads a transposed weight (in, out / group, ...) as if it were none.
        weight_init, bias_init = layer_initializers(weight_init, bias_init, math.prod(weight_shape[1:]))
        self.weight = Parameter(initializer(weight_init, weight_shape, dtype), name="weight")
        self.bias = None
        if has_bias:
            self.bias = Parameter(initializer(bias_init, [out_channels], dtype), name="bias")
        self.bias_add = P.BiasAdd()
        self._make_operator(data_format)

    def _make_operator(self, data_format: str) -> None:
        """The operator of the convolution; subclasses write it."""

    def _biased(self, output: Tensor) -> Tensor:
        return output if self.bias is None else self.bias_add(output, self.bias)

    def extend_repr(self) -> str:
        return (
            f"input_channels={self.in_channels}, output_channels={self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, pad_mode={self.pad_mode}, padding={self.padding}, dilation={self.dilation}, "
            f"group={self.group}, has_bias={self.has_bias}"
        )


def _check(cls_name: str, channels: tuple[int, int], group: int, data_format: str, pad_mode: str, padding: Any) -> None:
    check_sizes(cls_name, in_channels=channels[0], out_channels=channels[1], group=group)
    if channels[0] % group or channels[1] % group:
        raise ValueError(
            f"For '{cls_name}', the attr 'in_channels' and 'out_channels' must be divisible by attr 'group', "
            f"but got {channels[0]}, {channels[1]} and {group}."
        )
    if pad_mode not in _MODES:
        raise ValueError(f"For '{cls_name}', the 'pad_mode' must be one of {_MODES}, but got {pad_mode}.")
    if pad_mode != "pad" and padding != 0 and any(padding if isinstance(padding, tuple) else (padding,)):
        raise ValueError(
            f"For '{cls_name}', the 'padding' must be zero when 'pad_mode' is not 'pad', but got {padding}."
        )
    if data_format not in ("NCHW", "NCDHW"):
        raise ValueError(f"For '{cls_name}', the 'data_format' must be 'NCHW' here, but got {data_format}.")


class Conv2d(_Convolution):
    """2-D convolution: (N, in_channels, H, W) -> (N, out_channels, H', W')."""

    def _make_operator(self, data_format: str) -> None:
        window = (self.kernel_size, 1, self.pad_mode, self.padding, self.stride, self.dilation, self.group)
        self.conv2d = P.Conv2D(self.out_channels, *window, data_format)

    def construct(self, x: Tensor) -> Tensor:
        return self._biased(self.conv2d(x, self.weight))


class Conv2dTranspose(_Convolution):
    """Transposed 2-D convolution: the gradient of Conv2d with respect to its image."""

    is_transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        pad_mode: str = "same",
        padding: int | tuple[int, int, int, int] = 0,
        output_padding: int | tuple[int, int] = 0,
        dilation: int | tuple[int, int] = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        data_format: str = "NCHW",
        dtype: DType = float32,
    ) -> None:
        window = (kernel_size, stride, pad_mode, padding, dilation, group)
        inits = (has_bias, weight_init, bias_init, data_format, dtype)
        super().__init__(in_channels, out_channels, *window, *inits)
        self.output_padding = pair(output_padding)
        for axis, more in enumerate(self.output_padding):
            if not 0 <= more < max(self.stride[axis], self.dilation[axis]):
                raise ValueError(
                    f"For 'Conv2dTranspose', the 'output_padding' must be at least 0 and less than the stride or the "
                    f"dilation, but got {output_padding}."
                )
        if pad_mode != "pad" and any(self.output_padding):
            raise ValueError(
                "For 'Conv2dTranspose', the 'output_padding' must be zero when 'pad_mode' is not 'pad', "
                f"but got {output_padding}."
            )

    def _output_size(self, shape: tuple[int, ...]) -> tuple[int, int, int, int]:
        pads = (self.padding,) * 4 if isinstance(self.padding, int) else tuple(self.padding)
        sizes = []
        for axis in (0, 1):
            span = (self.kernel_size[axis] - 1) * self.dilation[axis] + 1
            given, stride = shape[2 + axis], self.stride[axis]
            if self.pad_mode == "same":
                sizes.append(given * stride)
            elif self.pad_mode == "valid":
                sizes.append(given * stride + max(span - stride, 0))
            else:
                cut = pads[2 * axis] + pads[2 * axis + 1]
                sizes.append((given - 1) * stride + span - cut)
        return shape[0], self.out_channels, sizes[0], sizes[1]

    def construct(self, x: Tensor) -> Tensor:
        size = self._output_size(x.shape)
        convolution = P.Conv2D(
            self.in_channels, self.kernel_size, 1, self.pad_mode, self.padding, self.stride, self.dilation, self.group
        )
        sizes = Tensor(np.array(size, np.int64))
        output = call("Conv2DBackpropInput", x, self.weight, sizes, input_sizes=size, **convolution.attrs)
        output = self._biased(output)
        if not any(self.output_padding):
            return output
        # Source: MindSpore: `output_padding` are zeros behind the result, which has its bias already.
        return P.Pad(((0, 0), (0, 0), *((0, more) for more in self.output_padding)))(output)


def _check_ints(cls_name: str, **numbers: Any) -> None:
    """Raises: TypeError for what is no int, ValueError for negative ones, and for 0 but as padding."""
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int):
            raise TypeError(f"For '{cls_name}', the type of '{name}' must be int, but got {type(number).__name__}.")
        if number < (0 if name == "padding" else 1):
            raise ValueError(f"For '{cls_name}', the '{name}' must be positive, but got {number}.")


def _flat(init: Any) -> Any:
    """First values of a weight (O, I, L) as (O, I, 1, L)."""
    return F.expand_dims(init, 2) if isinstance(init, Tensor) and init.ndim == 3 else init


class _OfOneAxis(_Convolution):
    """A convolution of two dimensions on data of height 1."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        pad_mode: str = "same",
        padding: int = 0,
        dilation: int = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
    ) -> None:
        name = type(self).__name__
        _check_ints(name, kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)
        super().__init__(
            in_channels,
            out_channels,
            (1, kernel_size),
            (1, stride),
            pad_mode,
            (0, 0, padding, padding),
            dilation=(1, dilation),
            group=group,
            has_bias=has_bias,
            weight_init=_flat(weight_init),
            bias_init=bias_init,
        )

    def construct(self, x: Tensor) -> Tensor:
        return F.squeeze(super().construct(F.expand_dims(x, 2)), 2)


class Conv1d(_OfOneAxis, Conv2d):
    """1-D convolution: (N, in_channels, L) -> (N, out_channels, L'). Its weight is (O, I / group, 1, kernel_size)."""


class Conv1dTranspose(_OfOneAxis, Conv2dTranspose):
    """Transposed 1-D convolution: the gradient of Conv1d with respect to its signal."""


class _OfVolume(_Convolution):
    ndim = 3

    @property
    def _window(self) -> tuple[Any, ...]:
        pads = (self.padding,) * 6 if isinstance(self.padding, int) else tuple(self.padding)
        return self.kernel_size, 1, self.pad_mode, pads, self.stride, self.dilation, self.group


class Conv3d(_OfVolume):
    """3-D convolution: (N, in_channels, D, H, W) -> (N, out_channels, D', H', W')."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        pad_mode: str = "same",
        padding: Any = 0,
        dilation: Any = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        data_format: str = "NCDHW",
    ) -> None:
        window = (kernel_size, stride, pad_mode, padding, dilation, group)
        super().__init__(in_channels, out_channels, *window, has_bias, weight_init, bias_init, data_format)
        self.conv3d = P.Conv3D(out_channels, *self._window, data_format)

    def construct(self, x: Tensor) -> Tensor:
        return self._biased(self.conv3d(x, self.weight))


class Conv3dTranspose(_OfVolume):
    """Transposed 3-D convolution: the gradient of Conv3d with respect to its volume."""

    is_transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        pad_mode: str = "same",
        padding: Any = 0,
        dilation: Any = 1,
        group: int = 1,
        output_padding: Any = 0,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        data_format: str = "NCDHW",
    ) -> None:
        window = (kernel_size, stride, pad_mode, padding, dilation, group)
        super().__init__(in_channels, out_channels, *window, has_bias, weight_init, bias_init, data_format)
        if pad_mode != "pad" and output_padding != 0 and any(sizes(output_padding, 3)):
            raise ValueError(
                "For 'Conv3dTranspose', the 'output_padding' must be zero when 'pad_mode' is not 'pad', "
                f"but got {output_padding}."
            )
        self.conv3d_transpose = P.Conv3DTranspose(
            in_channels, out_channels, *self._window, sizes(output_padding, 3), data_format
        )

    def construct(self, x: Tensor) -> Tensor:
        return self._biased(self.conv3d_transpose(x, self.weight))


publish(__name__)

__getattr__ = explain_missing(__name__)
