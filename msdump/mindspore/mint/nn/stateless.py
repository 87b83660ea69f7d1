"""Layers of `mindspore.mint.nn` that keep no parameters: a function of `mint.nn.functional` with its settings."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.declared import variants
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.mint.nn import functional as F
from msdump.mindspore.names import publish
from msdump.mindspore.nn.declared import Declared, as_layer, layers

_TABLE = """
    AdaptiveAvgPool1d adaptive_avg_pool1d input | output_size
    AdaptiveAvgPool2d adaptive_avg_pool2d input | output_size
    AdaptiveAvgPool3d adaptive_avg_pool3d input | output_size
    AdaptiveMaxPool1d adaptive_max_pool1d input | output_size return_indices=False
    AdaptiveMaxPool2d adaptive_max_pool2d input | output_size return_indices=False
    AvgPool1d avg_pool1d input | kernel_size stride=None padding=0 ceil_mode=False count_include_pad=True
    AvgPool2d avg_pool2d input
        | kernel_size stride=None padding=0 ceil_mode=False count_include_pad=True divisor_override=None
    AvgPool3d avg_pool3d input
        | kernel_size stride=None padding=0 ceil_mode=False count_include_pad=True divisor_override=None
    BCELoss binary_cross_entropy input target | weight=None reduction='mean'
    BCEWithLogitsLoss binary_cross_entropy_with_logits input target | weight=None reduction='mean' pos_weight=None
    CrossEntropyLoss cross_entropy input target | weight=None ignore_index=-100 reduction='mean' label_smoothing=0.0
    ELU elu input | alpha=1.0 inplace=False
    Flatten flatten input | start_dim=1 end_dim=-1
    Fold fold input | output_size kernel_size dilation=1 padding=0 stride=1
    GELU gelu input | approximate='none'
    GLU glu input | dim=-1
    Hardshrink hardshrink input | lambd=0.5
    Hardsigmoid hardsigmoid input
    Hardswish hardswish input
    Hardtanh hardtanh input | min_val=-1.0 max_val=1.0 inplace=False
    KLDivLoss kl_div input target | reduction='mean' log_target=False
    L1Loss l1_loss input target | reduction='mean'
    LogSigmoid logsigmoid input
    LogSoftmax log_softmax input | dim=None
    MSELoss mse_loss input target | reduction='mean'
    MaxPool2d max_pool2d input | kernel_size stride=None padding=0 dilation=1 return_indices=False ceil_mode=False
    Mish mish input
    NLLLoss nll_loss input target | weight=None ignore_index=-100 reduction='mean'
    PixelShuffle pixel_shuffle input | upscale_factor
    ReLU relu input
    ReLU6 relu6 input | inplace=False
    SELU selu input
    SiLU silu input | inplace=False
    Sigmoid sigmoid input
    SmoothL1Loss smooth_l1_loss input target | reduction='mean' beta=1.0
    SoftMarginLoss soft_margin_loss input target | reduction='mean'
    Softmax softmax input | dim=None
    Softshrink softshrink input | lambd=0.5
    Tanh tanh input
    Threshold threshold input | threshold value inplace=False
    Unfold unfold input | kernel_size dilation=1 padding=0 stride=1
    Upsample interpolate input
        | size=None scale_factor=None mode='nearest' align_corners=None recompute_scale_factor=None
"""

globals().update(layers(_TABLE, vars(F), __name__, shows="*"))


class _Pad(Declared):
    """Pads the last `ndim` axes.   mode: that of `pad`."""

    ndim, mode = 1, "constant"
    value: Any = None

    def _set_up(self, padding: Any) -> None:
        self.padding = (padding,) * (2 * self.ndim) if isinstance(padding, int) else tuple(padding)

    def construct(self, input: Tensor) -> Any:
        value = (0 if self.value is None else self.value) if self.mode == "constant" else None
        return F.pad(input, self.padding, self.mode, value)


class _ConstantPad(_Pad, takes="padding value"):
    """Pads with a value."""


class _OtherPad(_Pad, takes="padding"):
    """Pads with zeros, or with what is there."""


_PADS = {"Constant": "constant", "Zero": "constant", "Reflection": "reflect", "Replication": "replicate"}


for _kind, _mode in _PADS.items():
    for _ndim in (1, 2, 3):
        _base = _ConstantPad if _kind == "Constant" else _OtherPad
        _row = (f"Pads the last {_ndim} axes: {_mode}.", {"ndim": _ndim, "mode": _mode})
        globals().update(variants(_base, __name__, **{f"{_kind}Pad{_ndim}d": _row}))


class Dropout(Declared, takes="p=0.5 inplace=False"):
    """Elements set to 0 with probability p while training."""

    def construct(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout2d(Declared, takes="p=0.5"):
    """Channels set to 0 with probability p while training."""

    def construct(self, input: Tensor) -> Any:
        return F.dropout2d(input, self.p, self.training)


@as_layer()
def MaxUnpool2d(
    input: Tensor, indices: Tensor, output_size: Any = None, *, kernel_size: Any, stride: Any = None, padding: Any = 0
) -> Any:
    """The windows of a max pooling with their greatest elements at their places, 0 elsewhere."""
    return F.max_unpool2d(input, indices, kernel_size, stride, padding, output_size)


@as_layer()
def UpsamplingNearest2d(input: Tensor, *, size: Any = None, scale_factor: Any = None) -> Any:
    """Images of another size, each element the nearest one."""
    return F.interpolate(input, size, scale_factor, "nearest")


@as_layer()
def UpsamplingBilinear2d(input: Tensor, *, size: Any = None, scale_factor: Any = None) -> Any:
    """Images of another size, between the four nearest elements, corners on corners."""
    return F.interpolate(input, size, scale_factor, "bilinear", True)


publish(__name__)
