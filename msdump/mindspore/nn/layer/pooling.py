"""Poolings, of one to three axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msdump.mindspore.common.declared import variants
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call, execute
from msdump.mindspore.names import explain_missing, publish
from msdump.mindspore.nn.declared import Declared, layers
from msdump.mindspore.ops import function as F
from msdump.mindspore.ops import operations as P
from msdump.mindspore.ops.operations import pair
from msdump.mindspore.ops.windows import sizes


def _check_window(cls_name: str, pad_mode: str, **numbers: Any) -> None:
    """Raises: ValueError for a mode that is none, and for sizes that are not positive."""
    if pad_mode.lower() not in ("valid", "same", "pad"):
        raise ValueError(f"For '{cls_name}', the 'pad_mode' must be 'valid', 'same' or 'pad', but got {pad_mode}.")
    for name, value in numbers.items():
        items = (value,) if isinstance(value, int) else tuple(value)
        if not items or any(isinstance(item, bool) or not isinstance(item, int) or item < 1 for item in items):
            raise ValueError(
                f"For '{cls_name}', the '{name}' must be an positive int number or a tuple, but got {value}"
            )


class _Pool(Declared, shows="kernel_size stride pad_mode:_mode"):
    """Base of poolings: takes the batch axis away again where the data have none.   ndim: axes of the window."""

    ndim = 3

    def _set_sizes(self) -> None:
        """Check the window, and give its settings a size for each axis."""
        _check_window(self.cls_name, self.pad_mode, kernel_size=self.kernel_size, stride=self.stride)
        for name in ("kernel_size", "stride", "padding", "dilation"):
            if name in self.settings:
                setattr(self, name, sizes(getattr(self, name), self.ndim))

    @property
    def _mode(self) -> str:
        return str(self.pad_mode).upper()

    def construct(self, x: Tensor) -> Any:
        if x.ndim == self.ndim + 2:
            return self.pooled(x)
        if x.ndim != self.ndim + 1:
            raise ValueError(
                f"For '{self.cls_name}', the input must have {self.ndim + 1} or {self.ndim + 2} axes, but got {x.ndim}."
            )
        results = self.pooled(F.expand_dims(x, 0))
        if isinstance(results, tuple):
            return tuple(F.squeeze(result, 0) for result in results)
        return F.squeeze(results, 0)

    def pooled(self, x: Tensor) -> Any:
        """The result for a batch; subclasses write it."""
        raise NotImplementedError(f"{self.cls_name}: expected a pooled(x) method.")

    def _in_three(self, op_type: str, x: Tensor, **attrs: Any) -> tuple[Tensor, ...]:
        """Results of an operator of three axes on data of fewer."""
        ahead = tuple(range(2, 5 - self.ndim))
        for _ in ahead:
            x = F.expand_dims(x, 2)
        results = execute(op_type, [x], attrs)
        return tuple(F.squeeze(result, ahead) for result in results) if ahead else results

    def _whole(self, values: tuple[int, ...], fill: int = 1) -> tuple[int, ...]:
        return (fill,) * (3 - self.ndim) + values


class _MaxPool(
    _Pool, takes="kernel_size=1 stride=1 pad_mode='valid' padding=0 dilation=1 return_indices=False ceil_mode=False"
):
    """Largest element under a window. What only `pad_mode` "pad" can do runs on the operator of three axes."""

    def _set_up(self) -> None:
        self._set_sizes()
        is_special = any(self.padding) or any(item != 1 for item in self.dilation) or self.return_indices
        if self._mode != "PAD" and (is_special or (self.ceil_mode and self.ndim < 3)):
            raise ValueError(
                f"For {self.cls_name}, the parameter 'padding', 'dilation', 'return_indices', 'ceil_mode' can not be "
                f"set to non-default value when pad_mode is not 'pad', but got pad_mode:{self.pad_mode}."
            )

    def pooled(self, x: Tensor) -> Any:
        attrs: dict[str, Any]
        if self._mode == "PAD" and (self.ndim < 3 or self.return_indices or max(self.dilation) > 1):
            attrs = {"ksize": self._whole(self.kernel_size), "strides": self._whole(self.stride)}
            attrs |= {"pads": self._whole(self.padding, 0), "dilation": self._whole(self.dilation)}
            results = self._in_three("MaxPool3DWithArgmax", x, **attrs, ceil_mode=self.ceil_mode)
            return results if self.return_indices else results[0]
        if self.ndim == 1:
            window = P.MaxPool((1, *self.kernel_size), (1, *self.stride), self.pad_mode)
            return F.squeeze(window(F.expand_dims(x, 2)), 2)
        attrs = {"kernel_size": self.kernel_size, "strides": self.stride, "pad_mode": self._mode}
        return call("MaxPool3D", x, **attrs, pad_list=self.padding, ceil_mode=self.ceil_mode)


_LARGEST = variants(
    _MaxPool,
    __name__,
    _MaxPool2d=("What MaxPool2d cannot do by the operator of two axes.", {"ndim": 2}),
    MaxPool1d=("Largest element under a window of (N, C, L).", {"ndim": 1}),
    MaxPool3d=("Largest element under a window of (N, C, D, H, W).", {}),
)


class _AvgPool(
    _Pool,
    takes="kernel_size=1 stride=1 pad_mode='valid' padding=0 ceil_mode=False count_include_pad=True "
    "divisor_override=None",
):
    """Mean under a window."""

    divisor_override: int | None = None

    def _set_up(self) -> None:
        padding, divisor = self.padding, self.divisor_override
        self._set_sizes()
        if self._mode != "PAD" and any(self.padding):
            raise ValueError(
                f"For '{self.cls_name}', the 'padding' must be 0 when 'pad_mode' is not 'pad', but got {padding}."
            )
        if divisor is not None and divisor <= 0:
            raise ValueError(f"For '{self.cls_name}', the 'divisor_override' must be > 0, but got {divisor}.")
        self.divisor_override = divisor or 0

    def pooled(self, x: Tensor) -> Any:
        is_plain = self._mode != "PAD" and self.count_include_pad and not self.ceil_mode
        if self.ndim == 1 and is_plain:
            window = P.AvgPool((1, *self.kernel_size), (1, *self.stride), self.pad_mode)
            return F.squeeze(window(F.expand_dims(x, 2)), 2)
        pads = tuple(item for size in self._whole(self.padding, 0) for item in (size, size))
        return self._in_three(
            "AvgPool3D",
            x,
            kernel_size=self._whole(self.kernel_size),
            strides=self._whole(self.stride),
            pad_mode=self.pad_mode,
            pad=pads,
            ceil_mode=self.ceil_mode,
            count_include_pad=self.count_include_pad,
            divisor_override=self.divisor_override,
        )[0]


_MEANS = variants(
    _AvgPool,
    __name__,
    _AvgPool2d=("What AvgPool2d cannot do by the operator of two axes.", {"ndim": 2}),
    AvgPool3d=('Mean under a window of (N, C, D, H, W); zeros around count in pad_mode "same", too.', {}),
)
globals().update(_LARGEST | _MEANS)


class AvgPool1d(
    _AvgPool, takes="kernel_size=1 stride=1 pad_mode='valid' padding=0 ceil_mode=False count_include_pad=True"
):
    """Mean under a window of (N, C, L)."""

    ndim = 1


# -- adaptive ----------------------------------------------------------------------------------------------------------


class _Adaptive1d(Declared, takes="output_size:parts"):
    """Base of adaptive poolings of one axis: equal parts, whose number divides the length.   window: pools one part"""

    window: Callable[..., Any]

    def construct(self, input: Tensor) -> Tensor:
        if input.ndim != 3 or input.shape[2] < self.output_size or input.shape[2] % self.output_size:
            raise ValueError(
                f"For {self.cls_name}, the input must have 3 axes, the last divisible by output size "
                f"{self.output_size}, but got {input.shape}."
            )
        step = input.shape[2] // self.output_size
        result: Tensor = self.window((1, step), (1, step))(F.expand_dims(input, 2))
        return F.squeeze(result, 2)


_PARTS = variants(
    _Adaptive1d,
    __name__,
    AdaptiveAvgPool1d=("Means of equal parts of (N, C, L).", {"window": P.AvgPool}),
    AdaptiveMaxPool1d=("Largest elements of equal parts of (N, C, L).", {"window": P.MaxPool}),
)
_ADAPTIVE = """
    AdaptiveAvgPool2d adaptive_avg_pool2d input | output_size
    AdaptiveAvgPool3d adaptive_avg_pool3d input | output_size
    AdaptiveMaxPool2d adaptive_max_pool2d input | output_size return_indices=False
    AdaptiveMaxPool3d adaptive_max_pool3d input | output_size return_indices=False
"""

globals().update(_PARTS | layers(_ADAPTIVE, vars(F), __name__))

# -- of pictures -------------------------------------------------------------------------------------------------------


class _OfPictures(_Pool):
    """Base of poolings of (N, C, H, W) or (C, H, W) by the operator of two axes, where that can do it."""

    # In a tuple: it is no child of this cell.
    _special: tuple[_Pool, ...] = ()

    def _check(self, padding: Any, data_format: str) -> None:
        """Raises: ValueError for settings that this pooling cannot take."""
        if self._mode not in ("VALID", "SAME", "PAD"):
            raise ValueError(
                f"For '{self.cls_name}', the 'pad_mode' must be 'valid', 'same' or 'pad', got {self.pad_mode}."
            )
        if data_format != "NCHW":
            raise ValueError(f"For '{self.cls_name}', 'data_format' must be 'NCHW' here, but got {data_format!r}.")
        if self._mode != "PAD" and padding != 0:
            raise ValueError(f"For '{self.cls_name}', 'padding' must be 0 when 'pad_mode' is not 'pad', got {padding}.")

    def _around(self, padding: Any) -> tuple[int, int, int, int] | None:
        """(top, bottom, left, right) of (height, width); None unless the mode takes it."""
        height, width = pair(padding)
        return (height, height, width, width) if self._mode == "PAD" else None

    def construct(self, x: Tensor) -> Any:
        if self._special:
            return self._special[0].construct(x)
        return F.squeeze(self.pooled(F.expand_dims(x, 0)), 0) if x.ndim == 3 else self.pooled(x)


class MaxPool2d(
    _OfPictures,
    takes="kernel_size:size=1 stride:size=1 pad_mode='valid' padding=0 dilation:size=1 return_indices=False "
    "ceil_mode=False data_format='NCHW'",
):
    """Largest element under a window; padding never wins."""

    def _set_up(self, padding: Any, dilation: Any, return_indices: bool, ceil_mode: bool, data_format: str) -> None:
        self._check(padding, data_format)
        window = (self.kernel_size, self.stride, self.pad_mode)
        self.max_pool = P.MaxPool(*window, pad=self._around(padding))
        if return_indices or ceil_mode or any(item != 1 for item in pair(dilation)):
            self._special = (_LARGEST["_MaxPool2d"](*window, padding, dilation, return_indices, ceil_mode),)

    def pooled(self, x: Tensor) -> Any:
        return self.max_pool(x)


class AvgPool2d(
    _OfPictures,
    takes="kernel_size:size=1 stride:size=1 pad_mode='valid' padding=0 ceil_mode=False count_include_pad=True "
    "divisor_override=None data_format='NCHW'",
):
    """Mean under a window; zeros around the image count as elements if `count_include_pad` and pad_mode is "pad"."""

    def _set_up(
        self, padding: Any, ceil_mode: bool, count_include_pad: bool, divisor_override: int | None, data_format: str
    ) -> None:
        self._check(padding, data_format)
        window = (self.kernel_size, self.stride, self.pad_mode)
        if ceil_mode or divisor_override is not None:
            self._special = (_MEANS["_AvgPool2d"](*window, padding, ceil_mode, count_include_pad, divisor_override),)
        height, width = pair(padding)
        self.pad = None
        if count_include_pad and self._mode == "PAD":
            self.pad = P.Pad(((0, 0), (0, 0), (height, height), (width, width))) if height or width else None
            self.avg_pool = P.AvgPool(self.kernel_size, self.stride)
        else:
            self.avg_pool = P.AvgPool(*window, pad=self._around(padding))

    def pooled(self, x: Tensor) -> Any:
        return self.avg_pool(x if self.pad is None else self.pad(x))


publish(__name__)

__getattr__ = explain_missing(__name__)
