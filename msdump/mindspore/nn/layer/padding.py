"""Layers that put margins around their data: constant, mirrored, or of the border."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.ops import function as F


def _checked(cls_name: str, padding: Any, axes: int, is_negative_fine: bool) -> tuple[int, ...]:
    """Sizes before and after each axis, the last first.   Raises: TypeError, ValueError."""
    if isinstance(padding, int) and not isinstance(padding, bool):
        padding = (padding,) * (2 * axes)
    if not isinstance(padding, tuple) or not all(isinstance(item, int) for item in padding):
        raise TypeError(f"For '{cls_name}' the input 'padding' must be an integer or tuple of them, got {padding!r}.")
    if len(padding) % 2 or len(padding) > 2 * axes:
        raise ValueError(
            f"For '{cls_name}', the length of 'padding' must be even and at most {2 * axes}, but got {len(padding)}."
        )
    if not is_negative_fine and min(padding, default=0) < 0:
        raise ValueError(f"For '{cls_name}' every element in 'padding' must be >= 0, but got {padding}.")
    return padding


class _Pad(Cell):
    """Base of padding layers.   axes: how many axes get margins, the last ones."""

    axes = 1
    is_negative_fine = False

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _checked(self.cls_name, padding, self.axes, self.is_negative_fine)

    def _check(self, x: Tensor) -> None:
        if x.ndim < len(self.padding) // 2:
            raise ValueError(
                f"For '{self.cls_name}', the input must have {len(self.padding) // 2} axes or more, but got {x.ndim}."
            )


class _ConstantPad(_Pad):
    """Base of layers that pad with one value; negative sizes cut."""

    is_negative_fine = True

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError(
                f"For '{self.cls_name}', the type of parameter 'value' must be in [int, float], but got {type(value)}"
            )
        self.value = value

    def construct(self, x: Tensor) -> Any:
        self._check(x)
        return F.pad(x, self.padding, "constant", self.value)


class ConstantPad1d(_ConstantPad):
    """One value around the last axis."""


class ConstantPad2d(_ConstantPad):
    """One value around the last two axes."""

    axes = 2


class ConstantPad3d(_ConstantPad):
    """One value around the last three axes."""

    axes = 3


class ZeroPad2d(_ConstantPad):
    """Zeros around the last two axes."""

    axes = 2

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0)


class _ReflectionPad(_Pad):
    """Base of layers that mirror their data at the border, without the border itself."""

    def construct(self, x: Tensor) -> Any:
        self._check(x)
        pairs = [self.padding[place : place + 2] for place in range(0, len(self.padding), 2)]
        return F.mirror_pad(x, (*((0, 0),) * (x.ndim - len(pairs)), *reversed(pairs)), "REFLECT")


class ReflectionPad1d(_ReflectionPad):
    """Mirrors the last axis."""


class ReflectionPad2d(_ReflectionPad):
    """Mirrors the last two axes."""

    axes = 2


class ReflectionPad3d(_ReflectionPad):
    """Mirrors the last three axes."""

    axes = 3


class _ReplicationPad(_Pad):
    """Base of layers that repeat the border."""

    def construct(self, x: Tensor) -> Any:
        self._check(x)
        is_single = x.ndim == self.axes + 1
        result = F.pad(F.expand_dims(x, 0) if is_single else x, self.padding, "replicate")
        return F.squeeze(result, 0) if is_single else result


class ReplicationPad1d(_ReplicationPad):
    """Repeats the border of the last axis."""


class ReplicationPad2d(_ReplicationPad):
    """Repeats the border of the last two axes."""

    axes = 2


class ReplicationPad3d(_ReplicationPad):
    """Repeats the border of the last three axes."""

    axes = 3


publish(__name__)
