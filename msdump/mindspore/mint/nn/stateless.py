"""Layers of `mindspore.mint.nn` that keep no parameters: a function of `mint.nn.functional` with its settings."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.signatures import signature_of
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.mint.nn import functional as F
from msdump.mindspore.nn.cell import Cell

# Layer, the function that it calls with its tensors and then these settings, by name.
_TABLE = """
    AdaptiveAvgPool1d adaptive_avg_pool1d output_size
    AdaptiveAvgPool2d adaptive_avg_pool2d output_size
    AdaptiveAvgPool3d adaptive_avg_pool3d output_size
    AdaptiveMaxPool1d adaptive_max_pool1d output_size return_indices=False
    AdaptiveMaxPool2d adaptive_max_pool2d output_size return_indices=False
    AvgPool1d avg_pool1d kernel_size stride=None padding=0 ceil_mode=False count_include_pad=True
    AvgPool2d avg_pool2d kernel_size stride=None padding=0 ceil_mode=False count_include_pad=True divisor_override=None
    AvgPool3d avg_pool3d kernel_size stride=None padding=0 ceil_mode=False count_include_pad=True divisor_override=None
    BCELoss binary_cross_entropy weight=None reduction='mean'
    BCEWithLogitsLoss binary_cross_entropy_with_logits weight=None reduction='mean' pos_weight=None
    CrossEntropyLoss cross_entropy weight=None ignore_index=-100 reduction='mean' label_smoothing=0.0
    ELU elu alpha=1.0 inplace=False
    Flatten flatten start_dim=1 end_dim=-1
    Fold fold output_size kernel_size dilation=1 padding=0 stride=1
    GELU gelu approximate='none'
    GLU glu dim=-1
    Hardshrink hardshrink lambd=0.5
    Hardsigmoid hardsigmoid
    Hardswish hardswish
    Hardtanh hardtanh min_val=-1.0 max_val=1.0 inplace=False
    KLDivLoss kl_div reduction='mean' log_target=False
    L1Loss l1_loss reduction='mean'
    LogSigmoid logsigmoid
    LogSoftmax log_softmax dim=None
    MSELoss mse_loss reduction='mean'
    MaxPool2d max_pool2d kernel_size stride=None padding=0 dilation=1 return_indices=False ceil_mode=False
    Mish mish
    NLLLoss nll_loss weight=None ignore_index=-100 reduction='mean'
    PixelShuffle pixel_shuffle upscale_factor
    ReLU relu
    ReLU6 relu6 inplace=False
    SELU selu
    SiLU silu inplace=False
    Sigmoid sigmoid
    SmoothL1Loss smooth_l1_loss reduction='mean' beta=1.0
    SoftMarginLoss soft_margin_loss reduction='mean'
    Softmax softmax dim=None
    Softshrink softshrink lambd=0.5
    Tanh tanh
    Threshold threshold threshold value inplace=False
    Unfold unfold kernel_size dilation=1 padding=0 stride=1
    Upsample interpolate size=None scale_factor=None mode='nearest' align_corners=None recompute_scale_factor=None
"""


class _Layer(Cell):
    """Calls its function with the settings of the constructor."""

    function_name = ""
    settings_of: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        try:
            bound = self.settings_of.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"For '{type(self).__name__}', {error}.") from None
        bound.apply_defaults()
        self.settings = dict(bound.arguments)

    def construct(self, *tensors: Tensor) -> Any:
        return getattr(F, self.function_name)(*tensors, **self.settings)

    def extend_repr(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.settings.items())


def _layer(name: str, function_name: str, settings: list[str]) -> type[_Layer]:
    made = signature_of(settings)
    doc = getattr(F, function_name).__doc__
    own = {"function_name": function_name, "settings_of": made, "__doc__": doc, "__module__": __name__}
    return type(name, (_Layer,), {**own, "__signature__": made})


_PADS = {"Constant": "constant", "Zero": "constant", "Reflection": "reflect", "Replication": "replicate"}


class _Pad(Cell):
    """Pads the last `ndim` axes.   mode: that of `pad`."""

    ndim, mode, has_value = 1, "constant", False

    def __init__(self, padding: Any, *value: Any, **by_name: Any) -> None:
        super().__init__()
        given = [*value, *by_name.values()]
        if len(given) != int(self.has_value) or set(by_name) - {"value"}:
            expected = "padding, value" if self.has_value else "padding"
            raise TypeError(f"For '{type(self).__name__}', expected the arguments {expected}, got {len(given) + 1}.")
        self.padding = (padding,) * (2 * self.ndim) if isinstance(padding, int) else tuple(padding)
        self.value = given[0] if given else None

    def construct(self, input: Tensor) -> Any:
        value = (0 if self.value is None else self.value) if self.mode == "constant" else None
        return F.pad(input, self.padding, self.mode, value)


def _layers() -> dict[str, type[Cell]]:
    made: dict[str, type[Cell]] = {}
    for line in _TABLE.strip().splitlines():
        name, function_name, *settings = line.split()
        made[name] = _layer(name, function_name, settings)
    for kind, mode in _PADS.items():
        for ndim in (1, 2, 3):
            name = f"{kind}Pad{ndim}d"
            own = {"ndim": ndim, "mode": mode, "has_value": kind == "Constant", "__module__": __name__}
            made[name] = type(name, (_Pad,), {**own, "__doc__": f"Pads the last {ndim} axes: {mode}."})
    return made


globals().update(_layers())
__all__ = sorted(_layers())


class Dropout(Cell):
    """Elements set to 0 with probability p while training."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        self.p, self.inplace = p, inplace

    def construct(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout2d(Cell):
    """Channels set to 0 with probability p while training."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def construct(self, input: Tensor) -> Any:
        return F.dropout2d(input, self.p, self.training)


class MaxUnpool2d(Cell):
    """The windows of a max pooling with their greatest elements at their places, 0 elsewhere."""

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def construct(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Any:
        return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class UpsamplingNearest2d(Cell):
    """Images of another size, each element the nearest one."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__()
        self.size, self.scale_factor = size, scale_factor

    def construct(self, input: Tensor) -> Any:
        return F.interpolate(input, self.size, self.scale_factor, "nearest")


class UpsamplingBilinear2d(Cell):
    """Images of another size, between the four nearest elements, corners on corners."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__()
        self.size, self.scale_factor = size, scale_factor

    def construct(self, input: Tensor) -> Any:
        return F.interpolate(input, self.size, self.scale_factor, "bilinear", True)


__all__ += ["Dropout", "Dropout2d", "MaxUnpool2d", "UpsamplingBilinear2d", "UpsamplingNearest2d"]
