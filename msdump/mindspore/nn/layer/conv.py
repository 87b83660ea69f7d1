"""Convolutions, of one to three axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from msdump.mindspore.common.declared import check_sizes
from msdump.mindspore.common.dtype import float32
from msdump.mindspore.common.initializer import initializer, layer_initializers
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call
from msdump.mindspore.names import explain_missing, publish
from msdump.mindspore.nn.declared import Declared
from msdump.mindspore.ops import function as F
from msdump.mindspore.ops import operations as P
from msdump.mindspore.ops.operations import pair
from msdump.mindspore.ops.windows import sizes

_MODES = ("valid", "same", "pad")
_SHOWN = """input_channels:in_channels output_channels:out_channels kernel_size stride pad_mode padding dilation group
    has_bias"""
_WINDOW = "in_channels out_channels kernel_size stride=1 pad_mode='same' padding=0"
_WEIGHTS = "has_bias=False weight_init=None bias_init=None"


class _Convolution(Declared, shows=_SHOWN):
    """What convolutions share: checked arguments, weight and bias (None without `has_bias`).

    ndim            axes of the window
    is_transposed   whether the weight is (in_channels, out_channels / group, ...)
    """

    ndim = 2
    is_transposed = False
    bias: Parameter | None
    padding: Any

    def _set_up(self, weight_init: Any, bias_init: Any, data_format: str = "NCHW", dtype: Any = float32) -> None:
        check_sizes(self.cls_name, kernel_size=self.kernel_size, stride=self.stride, dilation=self.dilation)
        for name in ("kernel_size", "stride", "dilation"):
            setattr(self, name, sizes(getattr(self, name), self.ndim))
        self._check(data_format)
        in_channels, out_channels, group = self.in_channels, self.out_channels, self.group
        shape = (in_channels, out_channels // group) if self.is_transposed else (out_channels, in_channels // group)
        weight_shape = (*shape, *self.kernel_size)
        # Source: MindSpore reads a transposed weight (in, out / group, ...) as if it were none.
        weight_init, bias_init = layer_initializers(weight_init, bias_init, math.prod(weight_shape[1:]))
        self.weight = Parameter(initializer(weight_init, weight_shape, dtype), name="weight")
        self.bias = Parameter(initializer(bias_init, [out_channels], dtype), name="bias") if self.has_bias else None
        self.bias_add = P.BiasAdd()

    def _check_output_padding(self, padding: Any) -> None:
        if self.pad_mode != "pad" and any(sizes(padding, self.ndim)):
            raise ValueError(
                f"For '{self.cls_name}', the 'output_padding' must be zero when 'pad_mode' is not 'pad', "
                f"but got {padding}."
            )

    def _biased(self, output: Tensor) -> Tensor:
        return output if self.bias is None else self.bias_add(output, self.bias)

    def _check(self, data_format: str) -> None:
        channels, group, padding = (self.in_channels, self.out_channels), self.group, self.padding
        check_sizes(self.cls_name, in_channels=channels[0], out_channels=channels[1], group=group)
        if channels[0] % group or channels[1] % group:
            raise ValueError(
                f"For '{self.cls_name}', the attr 'in_channels' and 'out_channels' must be divisible by attr 'group', "
                f"but got {channels[0]}, {channels[1]} and {group}."
            )
        if self.pad_mode not in _MODES:
            raise ValueError(f"For '{self.cls_name}', the 'pad_mode' must be one of {_MODES}, but got {self.pad_mode}.")
        if self.pad_mode != "pad" and padding != 0 and any(padding if isinstance(padding, tuple) else (padding,)):
            raise ValueError(
                f"For '{self.cls_name}', the 'padding' must be zero when 'pad_mode' is not 'pad', but got {padding}."
            )
        if data_format not in ("NCHW", "NCDHW"):
            raise ValueError(f"For '{self.cls_name}', the 'data_format' must be 'NCHW' here, but got {data_format}.")


class Conv2d(_Convolution, takes=f"{_WINDOW} dilation=1 group=1 {_WEIGHTS} data_format='NCHW' dtype=float32"):
    """2-D convolution: (N, in_channels, H, W) -> (N, out_channels, H', W')."""

    def _set_up(self, weight_init: Any, bias_init: Any, data_format: str = "NCHW", dtype: Any = float32) -> None:
        super()._set_up(weight_init, bias_init, data_format, dtype)
        window = (self.kernel_size, 1, self.pad_mode, self.padding, self.stride, self.dilation, self.group)
        self.conv2d = P.Conv2D(self.out_channels, *window, data_format)

    def construct(self, x: Tensor) -> Tensor:
        return self._biased(self.conv2d(x, self.weight))


class Conv2dTranspose(
    _Convolution, takes=f"{_WINDOW} output_padding=0 dilation=1 group=1 {_WEIGHTS} data_format='NCHW' dtype=float32"
):
    """Transposed 2-D convolution: the gradient of Conv2d with respect to its image."""

    is_transposed = True
    output_padding: Any = 0

    def _set_up(self, weight_init: Any, bias_init: Any, data_format: str = "NCHW", dtype: Any = float32) -> None:
        super()._set_up(weight_init, bias_init, data_format, dtype)
        given, self.output_padding = self.output_padding, pair(self.output_padding)
        for axis, more in enumerate(self.output_padding):
            if not 0 <= more < max(self.stride[axis], self.dilation[axis]):
                raise ValueError(
                    f"For 'Conv2dTranspose', the 'output_padding' must be at least 0 and less than the stride or the "
                    f"dilation, but got {given}."
                )
        self._check_output_padding(given)

    def _output_size(self, shape: tuple[int, ...]) -> tuple[int, int, int, int]:
        pads = (self.padding,) * 4 if isinstance(self.padding, int) else tuple(self.padding)
        spans = []
        for axis in (0, 1):
            span = (self.kernel_size[axis] - 1) * self.dilation[axis] + 1
            given, stride = shape[2 + axis], self.stride[axis]
            if self.pad_mode == "same":
                spans.append(given * stride)
            elif self.pad_mode == "valid":
                spans.append(given * stride + max(span - stride, 0))
            else:
                cut = pads[2 * axis] + pads[2 * axis + 1]
                spans.append((given - 1) * stride + span - cut)
        return shape[0], self.out_channels, spans[0], spans[1]

    def construct(self, x: Tensor) -> Tensor:
        size = self._output_size(x.shape)
        convolution = P.Conv2D(
            self.in_channels, self.kernel_size, 1, self.pad_mode, self.padding, self.stride, self.dilation, self.group
        )
        wanted = Tensor(np.array(size, np.int64))
        output = call("Conv2DBackpropInput", x, self.weight, wanted, input_sizes=size, **convolution.attrs)
        output = self._biased(output)
        if not any(self.output_padding):
            return output
        # Source: MindSpore: `output_padding` are zeros behind the result, which has its bias already.
        return P.Pad(((0, 0), (0, 0), *((0, more) for more in self.output_padding)))(output)


def _flat(init: Any) -> Any:
    """First values of a weight (O, I, L) as (O, I, 1, L)."""
    return F.expand_dims(init, 2) if isinstance(init, Tensor) and init.ndim == 3 else init


class _OfOneAxis(_Convolution):
    """A convolution of two dimensions on data of height 1."""

    def _set_up(self, weight_init: Any, bias_init: Any, data_format: str = "NCHW", dtype: Any = float32) -> None:
        self.padding = (0, 0, self.padding, self.padding)
        for name in ("kernel_size", "stride", "dilation"):
            setattr(self, name, (1, getattr(self, name)))
        super()._set_up(_flat(weight_init), bias_init, data_format, dtype)

    def construct(self, x: Tensor) -> Tensor:
        return F.squeeze(super().construct(F.expand_dims(x, 2)), 2)


_ONE_AXIS = f"""in_channels out_channels kernel_size:window stride:window=1 pad_mode='same' padding:margin=0
    dilation:window=1 group=1 {_WEIGHTS}"""


class Conv1d(_OfOneAxis, Conv2d, takes=_ONE_AXIS):
    """1-D convolution: (N, in_channels, L) -> (N, out_channels, L'). Its weight is (O, I / group, 1, kernel_size)."""


class Conv1dTranspose(_OfOneAxis, Conv2dTranspose, takes=_ONE_AXIS):
    """Transposed 1-D convolution: the gradient of Conv1d with respect to its signal."""


class _OfVolume(_Convolution):
    ndim = 3

    @property
    def _window(self) -> tuple[Any, ...]:
        pads = (self.padding,) * 6 if isinstance(self.padding, int) else tuple(self.padding)
        return self.kernel_size, 1, self.pad_mode, pads, self.stride, self.dilation, self.group


class Conv3d(_OfVolume, takes=f"{_WINDOW} dilation=1 group=1 {_WEIGHTS} data_format='NCDHW'"):
    """3-D convolution: (N, in_channels, D, H, W) -> (N, out_channels, D', H', W')."""

    def _set_up(self, weight_init: Any, bias_init: Any, data_format: str = "NCDHW", dtype: Any = float32) -> None:
        super()._set_up(weight_init, bias_init, data_format, dtype)
        self.conv3d = P.Conv3D(self.out_channels, *self._window, data_format)

    def construct(self, x: Tensor) -> Tensor:
        return self._biased(self.conv3d(x, self.weight))


class Conv3dTranspose(_OfVolume, takes=f"{_WINDOW} dilation=1 group=1 output_padding=0 {_WEIGHTS} data_format='NCDHW'"):
    """Transposed 3-D convolution: the gradient of Conv3d with respect to its volume."""

    is_transposed = True

    def _set_up(
        self, weight_init: Any, bias_init: Any, data_format: str = "NCDHW", dtype: Any = float32,
        output_padding: Any = 0,
    ) -> None:  # fmt: skip
        super()._set_up(weight_init, bias_init, data_format, dtype)
        self._check_output_padding(output_padding)
        self.conv3d_transpose = P.Conv3DTranspose(
            self.in_channels, self.out_channels, *self._window, sizes(output_padding, 3), data_format
        )

    def construct(self, x: Tensor) -> Tensor:
        return self._biased(self.conv3d_transpose(x, self.weight))


publish(__name__)

__getattr__ = explain_missing(__name__)
