"""Convolutions of one and of three dimensions. Those of one are two-dimensional ones of height 1, as in MindSpore."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.nn.layer.conv import Conv2d, Conv2dTranspose, _Convolution
from msdump.mindspore.ops import function as F
from msdump.mindspore.ops import operations as P
from msdump.mindspore.ops.windows import sizes


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
