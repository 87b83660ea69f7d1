"""Poolings, of one to three axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call, execute
from msdump.mindspore.names import explain_missing, publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.declared import as_layer, check_sizes
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


class _Pool(Cell):
    """Base of poolings: takes the batch axis away again where the data have none.   ndim: axes of the window."""

    ndim = 3

    def __init__(self, kernel_size: Any, stride: Any, pad_mode: str) -> None:
        super().__init__()
        _check_window(self.cls_name, pad_mode, kernel_size=kernel_size, stride=stride)
        self.kernel_size, self.stride = sizes(kernel_size, self.ndim), sizes(stride, self.ndim)
        self.pad_mode = pad_mode

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

    def extend_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode.upper()}"


class _MaxPool(_Pool):
    """Largest element under a window. What only `pad_mode` "pad" can do runs on the operator of three axes."""

    def __init__(
        self,
        kernel_size: Any = 1,
        stride: Any = 1,
        pad_mode: str = "valid",
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode)
        self.padding, self.dilation = sizes(padding, self.ndim), sizes(dilation, self.ndim)
        self.return_indices, self.ceil_mode = return_indices, ceil_mode
        is_special = any(self.padding) or any(item != 1 for item in self.dilation) or return_indices
        if pad_mode.lower() != "pad" and (is_special or (ceil_mode and self.ndim < 3)):
            raise ValueError(
                f"For {self.cls_name}, the parameter 'padding', 'dilation', 'return_indices', 'ceil_mode' can not be "
                f"set to non-default value when pad_mode is not 'pad', but got pad_mode:{pad_mode}."
            )

    def pooled(self, x: Tensor) -> Any:
        attrs: dict[str, Any]
        if self.pad_mode.lower() == "pad" and (self.ndim < 3 or self.return_indices or max(self.dilation) > 1):
            attrs = {"ksize": self._whole(self.kernel_size), "strides": self._whole(self.stride)}
            attrs |= {"pads": self._whole(self.padding, 0), "dilation": self._whole(self.dilation)}
            results = self._in_three("MaxPool3DWithArgmax", x, **attrs, ceil_mode=self.ceil_mode)
            return results if self.return_indices else results[0]
        if self.ndim == 1:
            window = P.MaxPool((1, *self.kernel_size), (1, *self.stride), self.pad_mode)
            return F.squeeze(window(F.expand_dims(x, 2)), 2)
        attrs = {"kernel_size": self.kernel_size, "strides": self.stride, "pad_mode": self.pad_mode.upper()}
        return call("MaxPool3D", x, **attrs, pad_list=self.padding, ceil_mode=self.ceil_mode)


class _MaxPool2d(_MaxPool):
    """What MaxPool2d cannot do by the operator of two axes."""

    ndim = 2


class MaxPool1d(_MaxPool):
    """Largest element under a window of (N, C, L)."""

    ndim = 1


class MaxPool3d(_MaxPool):
    """Largest element under a window of (N, C, D, H, W)."""


class _AvgPool(_Pool):
    """Mean under a window."""

    def __init__(
        self,
        kernel_size: Any = 1,
        stride: Any = 1,
        pad_mode: str = "valid",
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode)
        self.padding = sizes(padding, self.ndim)
        if pad_mode.lower() != "pad" and any(self.padding):
            raise ValueError(
                f"For '{self.cls_name}', the 'padding' must be 0 when 'pad_mode' is not 'pad', but got {padding}."
            )
        if divisor_override is not None and divisor_override <= 0:
            raise ValueError(f"For '{self.cls_name}', the 'divisor_override' must be > 0, but got {divisor_override}.")
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad
        self.divisor_override = divisor_override or 0

    def pooled(self, x: Tensor) -> Any:
        is_plain = self.pad_mode.lower() != "pad" and self.count_include_pad and not self.ceil_mode
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


class _AvgPool2d(_AvgPool):
    """What AvgPool2d cannot do by the operator of two axes."""

    ndim = 2


class AvgPool1d(_AvgPool):
    """Mean under a window of (N, C, L)."""

    ndim = 1

    def __init__(
        self,
        kernel_size: Any = 1,
        stride: Any = 1,
        pad_mode: str = "valid",
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode, count_include_pad)


class AvgPool3d(_AvgPool):
    """Mean under a window of (N, C, D, H, W); zeros around count in pad_mode "same", too."""


# -- adaptive ----------------------------------------------------------------------------------------------------------


class _Adaptive1d(Cell):
    """Base of adaptive poolings of one axis: equal parts, whose number divides the length.   window: pools one part"""

    window: Callable[..., Any]

    def __init__(self, output_size: int) -> None:
        super().__init__()
        if isinstance(output_size, bool) or not isinstance(output_size, int):
            raise TypeError(f"For '{self.cls_name}', the type of 'output_size' must be int, but got {output_size!r}.")
        if output_size < 1:
            raise ValueError(f"For '{self.cls_name}', the 'output_size' must be > 0, but got {output_size}.")
        self.output_size = output_size

    def construct(self, input: Tensor) -> Tensor:
        if input.ndim != 3 or input.shape[2] < self.output_size or input.shape[2] % self.output_size:
            raise ValueError(
                f"For {self.cls_name}, the input must have 3 axes, the last divisible by output size "
                f"{self.output_size}, but got {input.shape}."
            )
        step = input.shape[2] // self.output_size
        result: Tensor = self.window((1, step), (1, step))(F.expand_dims(input, 2))
        return F.squeeze(result, 2)


class AdaptiveAvgPool1d(_Adaptive1d):
    """Means of equal parts of (N, C, L)."""

    window = P.AvgPool


class AdaptiveMaxPool1d(_Adaptive1d):
    """Largest elements of equal parts of (N, C, L)."""

    window = P.MaxPool


@as_layer()
def AdaptiveAvgPool3d(input: Tensor, *, output_size: Any) -> Tensor:
    """Means of parts of (N, C, D, H, W), so that the result has `output_size`; None keeps a size."""
    return F.adaptive_avg_pool3d(input, output_size)


@as_layer()
def AdaptiveMaxPool2d(input: Tensor, *, output_size: Any, return_indices: bool = False) -> Any:
    """Largest elements of parts of (N, C, H, W), with `return_indices` their places, too."""
    return F.adaptive_max_pool2d(input, output_size, return_indices)


@as_layer()
def AdaptiveMaxPool3d(input: Tensor, *, output_size: Any, return_indices: bool = False) -> Any:
    """Largest elements of parts of (N, C, D, H, W), with `return_indices` their places, too."""
    return F.adaptive_max_pool3d(input, output_size, return_indices)


def _check(cls_name: str, settings: dict[str, Any]) -> None:
    """Raises: ValueError for settings that this pooling cannot take."""
    if settings["pad_mode"].lower() not in ("valid", "same", "pad"):
        raise ValueError(
            f"For '{cls_name}', the 'pad_mode' must be 'valid', 'same' or 'pad', got {settings['pad_mode']}."
        )
    if settings["data_format"] != "NCHW":
        raise ValueError(f"For '{cls_name}', 'data_format' must be 'NCHW' here, but got {settings['data_format']!r}.")
    if settings["pad_mode"].lower() != "pad" and settings["padding"] != 0:
        raise ValueError(
            f"For '{cls_name}', 'padding' must be 0 when 'pad_mode' is not 'pad', got {settings['padding']}."
        )


def _around(pad_mode: str, padding: int | tuple[int, int]) -> tuple[int, int, int, int] | None:
    """(top, bottom, left, right) of (height, width); None unless the mode takes it."""
    height, width = pair(padding)
    return (height, height, width, width) if pad_mode.lower() == "pad" else None


def _of_pictures(pool: Callable[[Tensor], Any], x: Tensor) -> Any:
    """The pooling of (N, C, H, W), or of (C, H, W)."""
    return F.squeeze(pool(F.expand_dims(x, 0)), 0) if x.ndim == 3 else pool(x)


class MaxPool2d(Cell):
    """Largest element under a window; padding never wins."""

    def __init__(
        self,
        kernel_size: int | tuple[int, int] = 1,
        stride: int | tuple[int, int] = 1,
        pad_mode: str = "valid",
        padding: int | tuple[int, int] = 0,
        dilation: int | tuple[int, int] = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__()
        check_sizes("MaxPool2d", kernel_size=kernel_size, stride=stride, dilation=dilation)
        settings = {"pad_mode": pad_mode, "padding": padding, "dilation": dilation, "return_indices": return_indices}
        _check("MaxPool2d", {**settings, "ceil_mode": ceil_mode, "data_format": data_format})
        self.kernel_size, self.stride, self.pad_mode = kernel_size, stride, pad_mode
        self.max_pool = P.MaxPool(kernel_size, stride, pad_mode, pad=_around(pad_mode, padding))
        # In a tuple: it is no child of this cell.
        self._special: tuple[_MaxPool2d, ...] = ()
        if return_indices or ceil_mode or any(item != 1 for item in pair(dilation)):
            options = (padding, dilation, return_indices, ceil_mode)
            self._special = (_MaxPool2d(kernel_size, stride, pad_mode, *options),)

    def construct(self, x: Tensor) -> Any:
        return self._special[0].construct(x) if self._special else _of_pictures(self.max_pool, x)

    def extend_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode.upper()}"


class AvgPool2d(Cell):
    """Mean under a window; zeros around the image count as elements if `count_include_pad` and pad_mode is "pad"."""

    def __init__(
        self,
        kernel_size: int | tuple[int, int] = 1,
        stride: int | tuple[int, int] = 1,
        pad_mode: str = "valid",
        padding: int | tuple[int, int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__()
        check_sizes("AvgPool2d", kernel_size=kernel_size, stride=stride)
        _check(
            "AvgPool2d",
            {"pad_mode": pad_mode, "padding": padding, "ceil_mode": ceil_mode, "data_format": data_format},
        )
        self._special: tuple[_AvgPool2d, ...] = ()
        if ceil_mode or divisor_override is not None:
            options = (padding, ceil_mode, count_include_pad, divisor_override)
            self._special = (_AvgPool2d(kernel_size, stride, pad_mode, *options),)
        self.kernel_size, self.stride, self.pad_mode = kernel_size, stride, pad_mode
        height, width = pair(padding)
        self.pad = None
        if count_include_pad and pad_mode.lower() == "pad":
            self.pad = P.Pad(((0, 0), (0, 0), (height, height), (width, width))) if height or width else None
            self.avg_pool = P.AvgPool(kernel_size, stride)
        else:
            self.avg_pool = P.AvgPool(kernel_size, stride, pad_mode, pad=_around(pad_mode, padding))

    def construct(self, x: Tensor) -> Any:
        if self._special:
            return self._special[0].construct(x)
        return _of_pictures(lambda image: self.avg_pool(image if self.pad is None else self.pad(image)), x)

    def extend_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode.upper()}"


@as_layer()
def AdaptiveAvgPool2d(input: Tensor, *, output_size: int | tuple[int | None, int | None] | None) -> Tensor:
    """Mean over parts of the image, so that the result has `output_size`; None keeps a size."""
    return F.adaptive_avg_pool2d(input, output_size)


publish(__name__)

__getattr__ = explain_missing(__name__)
