"""Poolings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import explain_missing, publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.checks import check_sizes
from msdump.mindspore.nn.declared import as_layer
from msdump.mindspore.nn.layer.pooling_dims import _AvgPool2d, _MaxPool2d
from msdump.mindspore.ops import function as F
from msdump.mindspore.ops import operations as P
from msdump.mindspore.ops.operations import pair


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
