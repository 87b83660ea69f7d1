"""A convolution or a dense layer with its normalisation and its activation, as one cell."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.layer.activation import LeakyReLU, get_activation
from msdump.mindspore.nn.layer.basic import Dense
from msdump.mindspore.nn.layer.conv import Conv2d
from msdump.mindspore.nn.layer.normalization import BatchNorm1d, BatchNorm2d
from msdump.mindspore.ops.primitive import Primitive


class _Combined(Cell):
    """What both share: normalisation and activation after the layer itself."""

    def _follow(self, norm: Cell | None, activation: Any, alpha: float) -> None:
        """Raises: TypeError for an activation that cannot be called in a graph."""
        self.has_bn, self.has_act = norm is not None, activation is not None
        if norm is not None:
            self.batchnorm = norm
        if activation == "leakyrelu":
            self.activation: Any = LeakyReLU(alpha)
        else:
            self.activation = get_activation(activation) if isinstance(activation, str) else activation
        if activation is not None and not isinstance(self.activation, Cell | Primitive):
            raise TypeError(
                f"For '{self.cls_name}', the 'activation' must be str or Cell or Primitive, "
                f"but got {type(activation).__name__}."
            )

    def _after(self, x: Tensor) -> Any:
        if self.has_bn:
            x = self.batchnorm(x)
        return self.activation(x) if self.has_act else x


class Conv2dBnAct(_Combined):
    """Convolution, then batch normalisation with `has_bn`, then the activation."""

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
        weight_init: Any = "normal",
        bias_init: Any = "zeros",
        has_bn: bool = False,
        momentum: float = 0.997,
        eps: float = 1e-5,
        activation: Any = None,
        alpha: float = 0.2,
        after_fake: bool = True,
    ) -> None:
        super().__init__()
        window = (kernel_size, stride, pad_mode, padding, dilation, group)
        self.conv = Conv2d(in_channels, out_channels, *window, has_bias, weight_init, bias_init)
        self._follow(BatchNorm2d(out_channels, eps, momentum) if has_bn else None, activation, alpha)

    def construct(self, x: Tensor) -> Any:
        return self._after(self.conv(x))


class DenseBnAct(_Combined):
    """Dense layer, then batch normalisation with `has_bn`, then the activation."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        weight_init: Any = "normal",
        bias_init: Any = "zeros",
        has_bias: bool = True,
        has_bn: bool = False,
        momentum: float = 0.9,
        eps: float = 1e-5,
        activation: Any = None,
        alpha: float = 0.2,
        after_fake: bool = True,
    ) -> None:
        super().__init__()
        self.dense = Dense(in_channels, out_channels, weight_init, bias_init, has_bias)
        self._follow(BatchNorm1d(out_channels, eps, momentum) if has_bn else None, activation, alpha)

    def construct(self, x: Tensor) -> Any:
        return self._after(self.dense(x))


publish(__name__)
