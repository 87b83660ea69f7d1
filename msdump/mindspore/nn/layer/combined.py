"""A convolution or a dense layer with its normalisation and its activation, and a layer along an axis."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.declared import Declared
from msdump.mindspore.nn.layer.activation import LeakyReLU, get_activation
from msdump.mindspore.nn.layer.basic import Dense
from msdump.mindspore.nn.layer.conv import Conv2d
from msdump.mindspore.nn.layer.normalization import BatchNorm1d, BatchNorm2d
from msdump.mindspore.ops import function as F
from msdump.mindspore.ops.primitive import Primitive


class _Combined(Declared):
    """What both share: normalisation and activation after the layer itself."""

    activation: Any

    def _follow(self, norm: Any, channels: int) -> None:
        """Raises: TypeError for an activation that cannot be called in a graph."""
        self.has_act = self.activation is not None
        if self.has_bn:
            self.batchnorm = norm(channels, self.eps, self.momentum)
        if isinstance(self.activation, str):
            is_leaky = self.activation == "leakyrelu"
            self.activation = LeakyReLU(self.alpha) if is_leaky else get_activation(self.activation)
        if self.has_act and not isinstance(self.activation, Cell | Primitive):
            raise TypeError(
                f"For '{self.cls_name}', the 'activation' must be str or Cell or Primitive, "
                f"but got {type(self.activation).__name__}."
            )

    def _after(self, x: Tensor) -> Any:
        x = self.batchnorm(x) if self.has_bn else x
        return self.activation(x) if self.has_act else x


_AFTER = "eps=1e-05 activation=None alpha=0.2 after_fake=True"


class Conv2dBnAct(
    _Combined,
    takes="in_channels out_channels kernel_size stride=1 pad_mode='same' padding=0 dilation=1 group=1 has_bias=False "
    f"weight_init='normal' bias_init='zeros' has_bn=False momentum=0.997 {_AFTER}",
):
    """Convolution, then batch normalisation with `has_bn`, then the activation."""

    def _set_up(self, **settings: Any) -> None:
        for name in ("has_bn", "momentum", *(each.partition("=")[0] for each in _AFTER.split())):
            setattr(self, name, settings.pop(name))
        self.conv = Conv2d(**settings)
        self._follow(BatchNorm2d, settings["out_channels"])

    def construct(self, x: Tensor) -> Any:
        return self._after(self.conv(x))


class DenseBnAct(
    _Combined,
    takes="in_channels out_channels weight_init='normal' bias_init='zeros' has_bias=True has_bn=False momentum=0.9 "
    f"{_AFTER}",
):
    """Dense layer, then batch normalisation with `has_bn`, then the activation."""

    def _set_up(self, in_channels: int, out_channels: int, weight_init: Any, bias_init: Any, has_bias: bool) -> None:
        self.dense = Dense(in_channels, out_channels, weight_init, bias_init, has_bias)
        self._follow(BatchNorm1d, out_channels)

    def construct(self, x: Tensor) -> Any:
        return self._after(self.dense(x))


class TimeDistributed(Declared, takes="layer time_axis reshape_with_axis=None"):
    """A layer on each slice along an axis, the results next to each other on that axis."""

    def _set_up(self) -> None:
        if not callable(self.layer):
            raise TypeError(f"For 'TimeDistributed', the 'layer' must be Cell or Primitive, but got {self.layer!r}.")
        for axis in (self.time_axis, 0 if self.reshape_with_axis is None else self.reshape_with_axis):
            if isinstance(axis, bool) or not isinstance(axis, int):
                raise TypeError(f"For 'TimeDistributed', the axes must be int, but got {axis!r}.")

    def construct(self, inputs: Tensor) -> Tensor:
        axis = self.time_axis % inputs.ndim
        if self.reshape_with_axis is None:
            return F.stack([self.layer(part) for part in F.unstack(inputs, axis)], axis)
        # All slices at once: the time axis becomes part of another.
        order = [place for place in range(inputs.ndim) if place != axis]
        place = order.index(self.reshape_with_axis % inputs.ndim)
        turned = F.movedim(inputs, axis, place)
        shape = turned.shape
        merged = F.reshape(turned, (*shape[:place], shape[place] * shape[place + 1], *shape[place + 2 :]))
        result: Tensor = self.layer(merged)
        split = F.reshape(result, (*result.shape[:place], shape[place], -1, *result.shape[place + 1 :]))
        return F.movedim(split, place, axis)


publish(__name__)
